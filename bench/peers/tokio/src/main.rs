// SPDX-License-Identifier: MIT

//! The operations of ../../../uthreads.c with tokio's tasks.
//!
//!     peer WHAT OPS THREADS: prints {"ns": CPU time of the process per operation}

use std::os::fd::FromRawFd;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::mpsc::channel;
use tokio::task::{spawn, yield_now};

const FAN_BATCH: u64 = 1000;

fn cpu_ns() -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut at) };
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

async fn yields(ops: u64, threads: u64) {
    let tasks: Vec<_> = (0..threads)
        .map(|_| {
            spawn(async move {
                for _ in 0..ops / threads {
                    yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn creations(ops: u64) {
    for _ in 0..ops {
        spawn(async {}).await.unwrap();
    }
}

async fn round_trips(ops: u64) {
    let (there, mut hears) = channel::<u64>(1);
    let (back, mut gets) = channel::<u64>(1);
    let echo = spawn(async move {
        while let Some(ball) = hears.recv().await {
            back.send(ball).await.unwrap();
        }
    });
    for n in 0..ops {
        there.send(n).await.unwrap();
        gets.recv().await.unwrap();
    }
    drop(there);
    echo.await.unwrap();
}

fn short_task() -> u64 {
    let mut x = 1u64;
    for _ in 0..1000 {
        x = std::hint::black_box(x.wrapping_mul(3).wrapping_add(1));
    }
    x
}

async fn fan_out(ops: u64) {
    for _ in 0..ops / FAN_BATCH {
        let tasks: Vec<_> = (0..FAN_BATCH).map(|_| spawn(async { short_task() })).collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
}

/// echo_load.c has made the socket that is descriptor 3.
async fn echoes(connections: u64) -> u64 {
    let listener = unsafe { std::net::TcpListener::from_raw_fd(3) };
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let (mut connection, _) = listener.accept().await.unwrap();
        tasks.push(spawn(async move {
            let mut message = [0u8; 64];
            let mut nr = 0;
            while let Ok(bytes @ 1..) = connection.read(&mut message).await {
                let _ = connection.write_all(&message[..bytes]).await;
                nr += 1;
            }
            nr
        }));
    }
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let ops: u64 = words[2].parse().unwrap();
    let runtime = match words[3].parse().unwrap() {
        1 => Builder::new_current_thread().enable_io().build().unwrap(),
        threads => Builder::new_multi_thread().worker_threads(threads).enable_io().build().unwrap(),
    };
    let (cpu, wall) = (cpu_ns(), Instant::now());
    let ops = runtime.block_on(async {
        // As a task: what block_on() itself runs is no task.
        let what = words[1].clone();
        spawn(async move {
            match what.as_str() {
                "yield_2" => yields(ops, 2).await,
                "yield_1000" => yields(ops, 1000).await,
                "create_join" => creations(ops).await,
                "ping_pong" => round_trips(ops).await,
                "fan_out" => fan_out(ops).await,
                "echo" => return echoes(ops).await,
                _ => std::process::exit(2),
            }
            ops
        })
        .await
        .unwrap()
    });
    println!(
        "{{\"ns\": {:.2}, \"wall_ns\": {:.2}}}",
        (cpu_ns() - cpu) as f64 / ops as f64,
        wall.elapsed().as_nanos() as f64 / ops as f64
    );
}

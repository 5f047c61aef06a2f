// SPDX-License-Identifier: MIT

// The operations of ../../uthreads.c with goroutines.
//
//	go-peer WHAT OPS THREADS: prints {"ns": CPU time of the process per operation}
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const fanBatch = 1000

func cpuNs() int64 {
	var at syscall.Timespec
	// 2: CLOCK_PROCESS_CPUTIME_ID.
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 2, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

func yields(ops, threads int) {
	var all sync.WaitGroup
	for i := 0; i < threads; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < ops/threads; n++ {
				runtime.Gosched()
			}
		}()
	}
	all.Wait()
}

// A goroutine has no join: its end is told through a channel.
func creations(ops int) {
	ended := make(chan struct{})
	for n := 0; n < ops; n++ {
		go func() { ended <- struct{}{} }()
		<-ended
	}
}

func roundTrips(ops int) {
	there, back := make(chan int, 1), make(chan int, 1)
	go func() {
		for ball := range there {
			back <- ball
		}
	}()
	for n := 0; n < ops; n++ {
		there <- n
		<-back
	}
	close(there)
}

//go:noinline
func shortTask(x uint64) uint64 {
	for i := 0; i < 1000; i++ {
		x = x*3 + 1
	}
	return x
}

func fanOut(ops int) {
	for n := 0; n < ops; n += fanBatch {
		var all sync.WaitGroup
		all.Add(fanBatch)
		for i := 0; i < fanBatch; i++ {
			go func() {
				shortTask(1)
				all.Done()
			}()
		}
		all.Wait()
	}
}

// echo_load.c has made the socket that is descriptor 3.
func echoes(connections int) int64 {
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	var echoes atomic.Int64
	for i := 0; i < connections; i++ {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			message := make([]byte, 64)
			nr := int64(0)
			for {
				bytes, err := connection.Read(message)
				if err != nil {
					break
				}
				connection.Write(message[:bytes])
				nr++
			}
			echoes.Add(nr)
			connection.Close()
		}()
	}
	all.Wait()
	return echoes.Load()
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	ops, _ := strconv.Atoi(os.Args[2])
	threads, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	cpu, wall := cpuNs(), time.Now()
	switch os.Args[1] {
	case "yield_2":
		yields(ops, 2)
	case "yield_1000":
		yields(ops, 1000)
	case "create_join":
		creations(ops)
	case "ping_pong":
		roundTrips(ops)
	case "fan_out":
		fanOut(ops)
	case "echo":
		ops = int(echoes(ops))
	default:
		os.Exit(2)
	}
	fmt.Printf("{\"ns\": %.2f, \"wall_ns\": %.2f}\n", float64(cpuNs()-cpu)/float64(ops),
		float64(time.Since(wall).Nanoseconds())/float64(ops))
}

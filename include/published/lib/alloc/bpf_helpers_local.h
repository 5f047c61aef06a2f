/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A program's streams are one here, with what bpf_printk() prints. */
#ifndef SL_PUBLISHED_BPF_HELPERS_LOCAL_H
#define SL_PUBLISHED_BPF_HELPERS_LOCAL_H

#define bpf_stream_printk(stream, fmt, ...) ((void)(stream), bpf_printk(fmt, ##__VA_ARGS__))
#define scx_out(fmt, ...) bpf_printk(fmt, ##__VA_ARGS__)
#define scx_err(fmt, ...) bpf_printk(fmt, ##__VA_ARGS__)
#define scx_out_loc(fmt, ...) bpf_printk("%s:%d " fmt, __func__, __LINE__, ##__VA_ARGS__)
#define scx_err_loc(fmt, ...) bpf_printk("%s:%d " fmt, __func__, __LINE__, ##__VA_ARGS__)

#endif

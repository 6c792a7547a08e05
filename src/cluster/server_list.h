// ServerSpec: GPUs, cores and memory of a server; lists of servers from public file formats.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct ServerSpec {
    const char *name;
    uint32_t    gpus, cores_milli, memory_mib;
    uint32_t    rack;
    const char *gpu_type;  // "" when unknown
} ServerSpec;

typedef struct ServerList {
    ServerSpec *at;
    uint32_t    n, racks;
    uint64_t    gpus;
} ServerList;

enum { SERVERS_MAX = 1 << 20 };

// Alibaba's format sn,cpu_milli,memory_mib,gpu,model with one server a line, or the one-line format
// of Tiresias and Muri: num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node (GB).
MUST_USE Err server_list_read(const char *path, Arena *a, ServerList *out);
MUST_USE Err server_list_parse(const char *name, const char *text, size_t len, Arena *a,
                               ServerList *out);

// n equal servers named s0, s1, ...; 0 cores or memory: Synergy's 3 cores and 62.5 GB per GPU.
MUST_USE Err server_list_equal(uint32_t n, const ServerSpec *like, Arena *a, ServerList *out);

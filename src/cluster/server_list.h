// ServerSpec: a machine of a cluster and what it has to give; lists of them from the public
// formats.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct ServerSpec {
    const char *name;
    uint32_t    gpus, cores_milli, memory_mib;
    uint32_t    rack;
    const char *gpu_type;  // "" when it is not said
} ServerSpec;

typedef struct ServerList {
    ServerSpec *at;
    uint32_t    n, racks;
    uint64_t    gpus;
} ServerList;

enum { SERVERS_MAX = 1 << 20 };

// Alibaba's sn,cpu_milli,memory_mib,gpu,model, a server a line; or the clusters of Tiresias and its
// kin: num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node, one line, memory in
// GB.
MUST_USE Err server_list_read(const char *path, Arena *a, ServerList *out);
MUST_USE Err server_list_parse(const char *name, const char *text, size_t len, Arena *a,
                               ServerList *out);

// n equal ones, named s0, s1, ...; 0 for cores or memory: Synergy's 3 cores and 62.5 GB a GPU.
MUST_USE Err server_list_equal(uint32_t n, const ServerSpec *like, Arena *a, ServerList *out);

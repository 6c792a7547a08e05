// Relay: changes between the plain and the blocked layout.
#pragma once

#include <stddef.h>

#include "kernel/isa.h"

// plain [n][channels][pixels] <-> blocked [n][ceil(channels / lanes)][pixels][lanes].
typedef struct Relay {
    const float *from;
    float       *to;
    uint32_t     n, channels;
    size_t       pixels;
} Relay;

// Vector kernels: isa->relay_block (to blocked; lanes without a channel become 0) and
// isa->relay_plain (to plain), each with (relay, part).
uint32_t relay_tasks(const Relay *r, uint32_t lanes);
size_t   relay_count(const Relay *r, uint32_t lanes);  // floats of the blocked tensor

// Pixels of one task.
enum { RELAY_PIXELS = 512 };

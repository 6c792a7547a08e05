// BlockWidth: whether blocks on several cores keep what their tables promise, learned from blocks
// that ran.
//
// Members of a block meet after each layer. Where other processes use the cores, one member that is
// not running holds up the others for a whole time slice of the kernel's scheduler, and a block on
// one core is faster. The slow-down against the table is averaged for blocks on one core and on
// several, by length. It is forgotten within seconds, so that wide blocks are tried again.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum { BLOCK_WIDTH_CLASSES = 12 };  // of length on one core: below 16 us, 64 us, 256 us ...

typedef struct BlockWidthClass {
    double one, many;  // measured time / time in the table; 0: never measured
    TimeNs one_at, many_at;
} BlockWidthClass;

typedef struct BlockWidth {
    BlockWidthClass classes[BLOCK_WIDTH_CLASSES];
} BlockWidth;

// A block that would take one_ns on one core took slow_down times its time in the table.
void block_width_note(BlockWidth *w, double one_ns, bool many, double slow_down, TimeNs now);
// Whether one core is at least as fast as several, although the table says many_ns instead of
// one_ns. A policy that gives more cores than win by the table has its reasons: false.
bool block_width_one(const BlockWidth *w, double one_ns, double many_ns, TimeNs now);

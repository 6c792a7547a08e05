#include "node/live/block_width.h"

#include <math.h>

#define MEMORY_NS 2e9  // time constant of forgetting
#define SHORT_NS  16e3

// A block is slowed down by a rare large delay or not at all. The bound makes the average the share
// of blocks that were hit, rather than the length of the delays.
static const double most = 4, learn = 0.125;

static uint32_t class_of(double one_ns) {
    uint32_t c = 0;
    double   top = SHORT_NS;
    while (one_ns >= top && c + 1 < BLOCK_WIDTH_CLASSES) {
        top *= 4;
        c++;
    }
    return c;
}

static double remembered(double slow_down, TimeNs at, TimeNs now) {
    double passed = fmax((double)(now - at), 0);
    return slow_down > 0 ? 1 + (slow_down - 1) * exp(-passed / MEMORY_NS) : 1;
}

void block_width_note(BlockWidth *w, double one_ns, bool many, double slow_down, TimeNs now) {
    BlockWidthClass *c = &w->classes[class_of(one_ns)];
    double          *value = many ? &c->many : &c->one;
    TimeNs          *at = many ? &c->many_at : &c->one_at;
    if (!(slow_down > 0)) return;
    double before = remembered(*value, *at, now);
    *value = before + learn * (fmin(fmax(slow_down, 1), most) - before);
    *at = now;
}

bool block_width_one(const BlockWidth *w, double one_ns, double many_ns, TimeNs now) {
    const BlockWidthClass *c = &w->classes[class_of(one_ns)];
    return many_ns < one_ns && one_ns * remembered(c->one, c->one_at, now) <=
                                   many_ns * remembered(c->many, c->many_at, now);
}

// MuriSeat: groups of tasks on the GPUs of a draft: who is together, and how they come together.
#pragma once

#include "policy/cluster/pack.h"

typedef struct MuriSeat {
    Draft        *draft;
    ClusterSlice *base, *own;  // [n_servers] of the group that is being seated
    bool          by_need;     // who needs least has most of cores and memory
    double        slowest;     // rate of one that has company, at least
} MuriSeat;

void muri_seat_carve(MuriSeat *m, const ClusterSetup *s, Carve *from);

// A running task and all that share its GPUs, itself first. Returns how many.
uint32_t muri_seat_mates(const ClusterView *v, uint32_t slot, uint32_t mates[PACK_MOST]);
bool     muri_seat_together(const ClusterView *v, uint32_t a, uint32_t b);  // both run

// All of a group onto the GPUs of the first, which has a place; cores and memory are divided anew.
// Who else is there has been stopped. If somebody would be too slow, the first alone has a place.
void muri_seat_group(MuriSeat *m, const uint32_t *slots, uint32_t n);

// As it was when the plan began, if all of that is still free.
bool muri_seat_back(MuriSeat *m, uint32_t slot);

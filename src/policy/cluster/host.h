// Host: a server as its agent plans it: who is to be there with what, and how cores and memory are
// best dealt to them.
//
// Guests get their lowest rung; what is left goes, rung by rung, where a core or a byte buys the
// most worth. Guests of wide gangs and those without a class keep what they have.
#pragma once

#include "policy/cluster/want.h"

enum { HOST_GUESTS = 96, HOST_STEPS = HOST_GUESTS * (WANT_RUNGS - 1), HOST_MATES = 4 };

typedef struct Guest {
    uint64_t mask;
    uint32_t task;
    uint32_t cores_milli, memory_mib;
    uint16_t milli;
    uint8_t  gpus, rung;
    bool     fresh;  // it is not there yet
    bool     wide;
    float    share;  // what company and spread leave of its rate
} Guest;

typedef struct Host {
    uint32_t server, n;
    uint32_t gpus, cores_milli, memory_mib;  // that it has
    uint64_t used;                           // GPUs that somebody has
    double   worth;                          // of a second, of all guests together
    bool     changed;                        // by this plan
    bool     full;                           // more guests than can be planned for: let alone
    Guest    at[HOST_GUESTS];
} Host;

typedef struct HostStep {  // a rung up
    float    density, worth;
    uint32_t cores_milli, memory_mib;
    uint8_t  guest, rung;
} HostStep;

typedef struct HostFill {                // what can be made of a host without some of its guests
    double   worth;                      // of the rest with their lowest rungs
    int64_t  cores_milli, memory_mib;    // left over then; below 0: even that is too much
    uint32_t n;
    HostStep at[HOST_STEPS];             // best first
} HostFill;

// As it is now; wants are by slot.
void host_open(Host *h, const ClusterView *v, uint32_t server, const Want *wants);

// leave: a bit for every guest that is to go.
typedef struct HostLeave {
    uint64_t bits[(HOST_GUESTS + 63) / 64];
} HostLeave;

static inline bool host_leaves(const HostLeave *l, uint32_t i) {
    return (l->bits[i / 64] >> i % 64 & 1) != 0;
}
static inline void host_set_leave(HostLeave *l, uint32_t i, bool on) {
    uint64_t bit = UINT64_C(1) << i % 64;
    l->bits[i / 64] = on ? l->bits[i / 64] | bit : l->bits[i / 64] & ~bit;
}

void   host_fill(const Host *h, const HostLeave *leave, const Want *wants, HostFill *out);
double host_fill_worth(const HostFill *f, int64_t cores_milli, int64_t memory_mib);

float host_rate(const Guest *g, const Want *w);  // as it is planned
float host_worth(const Guest *g, const Want *w);

// What company leaves of the rate of a task with the GPUs of a mask; 0: somebody does not fit.
float host_company(const Host *h, const ClusterSetup *s, const Want *wants, uint64_t mask,
                   uint32_t task, uint32_t besides);

void host_remove(Host *h, uint32_t task);
void host_add(Host *h, const Guest *g);

// Shares and levels anew, after guests came or went.
void host_deal(Host *h, const ClusterSetup *s, const Want *wants);

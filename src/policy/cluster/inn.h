// Inn: a server as its agent plans it: who is to be there with what, and how cores and memory are
// best dealt to them.
//
// Guests get their lowest rung; what is left goes, rung by rung, where a core or a byte buys the
// most worth. Guests without a class keep what they have.
#pragma once

#include "policy/cluster/want.h"

enum { INN_GUESTS = 96, INN_STEPS = INN_GUESTS * (WANT_RUNGS - 1), INN_MATES = 4 };

typedef struct Guest {
    uint64_t mask;
    uint32_t task;
    uint32_t cores_milli, memory_mib;
    uint16_t milli;
    uint8_t  gpus, rung;
    bool     fresh;   // it is not there yet
    bool     sliced;  // others have the rest of its GPUs: it is as fast as the slowest of them
    uint8_t  cap;     // the rung that it gets at most
    float    spread;  // what being cut into slices leaves of its rate
    float    share;   // what company, spread and the type of GPU leave of its rate
} Guest;

typedef struct Inn {
    uint32_t server, n;
    uint32_t gpus, cores_milli, memory_mib;  // that it has
    uint64_t used;                           // GPUs that somebody has
    double   worth;                          // of a second, of all guests together
    bool     stale;                          // its offers are of before
    bool     full;                           // more guests than can be planned for: let alone
    Guest    at[INN_GUESTS];
} Inn;

typedef struct InnStep {  // a rung up
    float    density, worth;
    uint32_t cores_milli, memory_mib;
    uint8_t  guest, rung;
} InnStep;

typedef struct InnFill {               // what can be made of a inn without some of its guests
    double   worth;                    // of the rest with their lowest rungs
    int64_t  cores_milli, memory_mib;  // left over then; below 0: even that is too much
    uint32_t n;
    InnStep  at[INN_STEPS];  // best first
} InnFill;

// As it is now; wants are by slot.
void inn_open(Inn *h, const ClusterView *v, uint32_t server, const Want *wants);

// leave: a bit for every guest that is to go.
typedef struct InnLeave {
    uint64_t bits[(INN_GUESTS + 63) / 64];
} InnLeave;

static inline bool inn_leaves(const InnLeave *l, uint32_t i) {
    return (l->bits[i / 64] >> i % 64 & 1) != 0;
}
static inline void inn_set_leave(InnLeave *l, uint32_t i, bool on) {
    uint64_t bit = UINT64_C(1) << i % 64;
    l->bits[i / 64] = on ? l->bits[i / 64] | bit : l->bits[i / 64] & ~bit;
}

void   inn_fill(const Inn *h, const InnLeave *leave, const Want *wants, InnFill *out);
double inn_fill_worth(const InnFill *f, int64_t cores_milli, int64_t memory_mib);

float inn_pace(const ClusterSetup *s, const Want *w, uint32_t server);  // on its type of GPU
float inn_rate(const Guest *g, const Want *w);                          // as it is planned
float inn_worth(const Guest *g, const Want *w);                         // of all of a gang
float inn_part(const Guest *g, const Want *w);                          // of it that is here
float inn_spread(const ClusterSetup *s, const Want *w, uint32_t servers);

// What company leaves of the rate of a task with the GPUs of a mask; 0: somebody does not fit.
float inn_company(const Inn *h, const ClusterSetup *s, const Want *wants, uint64_t mask,
                  uint32_t task, uint32_t besides);

static inline const Guest *inn_guest(const Inn *h, uint32_t task) {  // NULL: it is not there
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].task == task) return &h->at[i];
    return NULL;
}

void inn_count(Inn *h, const Want *wants);  // worth anew, after values changed

void inn_remove(Inn *h, uint32_t task);
void inn_add(Inn *h, const Guest *g);

// Shares and levels anew, after guests came or went.
void inn_deal(Inn *h, const ClusterSetup *s, const Want *wants);

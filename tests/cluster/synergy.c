#include "tests/cluster/synergy.h"

#include <math.h>

#include "base/err.h"

// 1. Everything happens at rounds, 300 s apart: arrivals join, all resources are released, complete
//    jobs end, the others are sorted and placed in that order. A job with GPUs gains the whole
//    iterations of a round at once; one that needs fewer keeps its GPUs to the round's end.
// 2. A demand is (GPUs, cores, GB, storage). Storage is 62.5 MB/s a GPU for every model: the
//    original forgets to read it from the profile. The share is a server divided by its GPUs.
// 3. What a model can do with several GPUs comes from its profile for one, times GPUs, cut to what
//    a server has.
enum { GPUS, CORES, GB, STORAGE, KINDS };

static const double round_s = 300, aged_s = 1000 * 3600, storage_per_gpu = 62.5;

typedef struct GangDemand {
    double of[KINDS];
} GangDemand;

typedef struct Live {
    SynergyJob *job;
    GangDemand  best;
    GangDemand *held;               // [servers]
    double      best_speed, speed;  // speed stays from one round to the next sort
    double      attained_s;         // time with GPUs
    double      left_at;            // when it last let go of them; before: when it came
    int64_t     done, done_before;  // iterations; before this round
    bool        holds, aged;
} Live;

typedef struct Room {
    GangDemand used, on_hold;
    uint32_t  *jobs;  // that were placed here in this round; the walk of step (c) sorts them
    uint32_t   n_jobs;
} Room;

typedef struct Synergy {
    SynergySetup setup;
    Arena       *arena;
    Live        *lives;  // [n] as in the trace
    Room        *rooms;  // [servers]
    uint32_t    *queue;  // arrived and not over, in the order of the last round
    uint32_t    *picked;
    double       now;
    GangDemand   size, share;
    uint32_t     n, n_queue, arrived;
    bool         stuck;
} Synergy;

static GangDemand times(GangDemand d, double by) {
    for (int k = 0; k < KINDS; k++) d.of[k] *= by;
    return d;
}

// The speed of a job whose best demand had to be cut lies on the line between its share and its
// best, by cores alone, whatever it was that was cut.
static double cut_speed(const Live *l, const Synergy *s) {
    double gpus = l->job->gpus, fair = gpus * s->share.of[CORES];
    double ideal = gpus * l->job->model->best_cores;
    CHECK(ideal != fair);  // the original gives up
    return 1 + (l->job->model->speedup - 1) / (ideal - fair) * (l->best.of[CORES] - fair);
}

// A job larger than a server gets the share of whatever one server could not give.
static void profile(const Synergy *s, Live *l) {
    double gpus = l->job->gpus;
    bool   cut = false;
    l->best_speed = l->job->model->speedup;
    l->best = (GangDemand){{gpus, gpus * l->job->model->best_cores, gpus * l->job->model->best_gb,
                            gpus * storage_per_gpu}};
    for (int k = CORES; k < KINDS; k++) {
        if (l->best.of[k] <= s->size.of[k]) continue;
        bool wide = gpus > s->size.of[GPUS];
        l->best.of[k] = wide ? gpus * s->share.of[k] : s->size.of[k];
        if (wide) l->best_speed = 1;
        cut = !wide;
    }
    if (cut) l->best_speed = cut_speed(l, s);
    l->speed = l->best_speed;
}

static double remaining_s(const Synergy *s, const Live *l) {
    double left = l->job->model->iteration_s * (double)(l->job->iterations - l->done);
    return s->setup.share == SYNERGY_FAIR ? left : left / l->speed;
}

// srtf and ftf know the speed a job had in the last round, not the one it will have. ftf serves the
// least delayed first: smallest ratio of (so far + still to go) to its time at its share, alone.
static double key(const Synergy *s, const Live *l) {
    const SynergyJob *j = l->job;
    double            alone_s = j->model->iteration_s * (double)j->iterations;
    switch (s->setup.order) {
    case SYNERGY_FIFO: return j->arrival_s;
    case SYNERGY_SRTF: return remaining_s(s, l);
    case SYNERGY_LAS: return l->attained_s * j->gpus;
    case SYNERGY_FTF: return (s->now - j->arrival_s + remaining_s(s, l)) / alone_s;
    }
    CHECK(false);
    return 0;
}

// Except in fifo, a job without GPUs for 1000 hours goes before all others.
static bool before(const Synergy *s, const Live *a, const Live *b) {
    if (s->setup.order != SYNERGY_FIFO && a->aged != b->aged) return a->aged;
    if (key(s, a) != key(s, b)) return key(s, a) < key(s, b);
    return a->job->arrival_s < b->job->arrival_s;
}

static double free_gpus(const Synergy *s, uint32_t room) {
    return s->size.of[GPUS] - s->rooms[room].used.of[GPUS];
}

static bool fits(const Synergy *s, uint32_t room, const GangDemand *d) {
    const Room *r = &s->rooms[room];
    for (int k = 0; k < KINDS; k++)
        if (s->size.of[k] - r->used.of[k] - r->on_hold.of[k] < d->of[k]) return false;
    return true;
}

static uint32_t spans(const Synergy *s, const Live *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->setup.servers; i++) n += l->held[i].of[GPUS] > 0;
    return n;
}

// Takes what `held` says and gains a round's iterations.
static void take(Synergy *s, Live *l, double speed) {
    for (uint32_t i = 0; i < s->setup.servers; i++)
        for (int k = 0; k < KINDS; k++) s->rooms[i].used.of[k] += l->held[i].of[k];
    l->holds = true;
    l->attained_s += round_s;
    l->done_before = l->done;
    l->done += (int64_t)floor(round_s / (l->job->model->iteration_s / speed));
    if (l->done > l->job->iterations) l->done = l->job->iterations;
}

static void let_go(Synergy *s, Live *l) {
    for (uint32_t i = 0; i < s->setup.servers; i++) {
        for (int k = 0; k < KINDS; k++) s->rooms[i].used.of[k] -= l->held[i].of[k];
        l->held[i] = (GangDemand){0};
    }
    l->holds = false;
}

// A server for all of the demand: of those it fits, the one with the fewest free GPUs.
static bool put_together(Synergy *s, Live *l, const GangDemand *d) {
    uint32_t best = s->setup.servers;
    for (uint32_t i = 0; i < s->setup.servers; i++) {
        bool fewer = best == s->setup.servers || free_gpus(s, i) < free_gpus(s, best);
        if (fits(s, i, d) && fewer) best = i;
    }
    if (best == s->setup.servers) return false;
    l->held[best] = *d;
    return true;
}

// GPU by GPU with its part of the demand, from the server with the fewest free ones until it has no
// more room, then from the next.
static bool put_apart(Synergy *s, Live *l, const GangDemand *d) {
    GangDemand one = *d;
    for (int k = 0; k < KINDS; k++) one.of[k] = d->of[k] / l->job->gpus;
    uint32_t left = l->job->gpus;
    for (uint32_t free = 1; left && free <= s->size.of[GPUS]; free++) {
        for (uint32_t from = 0; left && from < s->setup.servers; from++) {
            if (free_gpus(s, from) != free) continue;
            for (; left && fits(s, from, &one); left--)
                for (int k = 0; k < KINDS; k++) {
                    s->rooms[from].on_hold.of[k] += one.of[k];
                    l->held[from].of[k] += one.of[k];
                }
        }
    }
    for (uint32_t i = 0; i < s->setup.servers; i++) {
        s->rooms[i].on_hold = (GangDemand){0};
        if (left) l->held[i] = (GangDemand){0};
    }
    return !left;
}

static bool place(Synergy *s, uint32_t x, const GangDemand *d) {
    Live *l = &s->lives[x];
    bool  placed = (l->job->gpus > 1 && put_together(s, l, d)) || put_apart(s, l, d);
    if (!placed) return false;
    take(s, l, s->setup.share == SYNERGY_FAIR ? 1 : l->speed);
    for (uint32_t i = 0; i < s->setup.servers; i++)
        if (l->held[i].of[GPUS] > 0) s->rooms[i].jobs[s->rooms[i].n_jobs++] = x;
    return true;
}

// More than its share of anything: then all of it becomes its share, and its speed 1.
static bool cut_to_share(const Synergy *s, Live *l, GangDemand *d) {
    GangDemand fair = times(s->share, l->job->gpus);
    bool       rich = false;
    for (int k = 0; k < KINDS; k++) rich = rich || d->of[k] > fair.of[k];
    if (rich) {
        *d = fair;
        l->speed = 1;
    }
    return rich;
}

static double holding(const Synergy *s, const Live *l, int kind) {
    double sum = 0;
    for (uint32_t i = 0; i < s->setup.servers; i++) sum += l->held[i].of[kind];
    return sum;
}

// Those on one server first, then those with most cores a GPU, then most GB a GPU.
static bool gives_before(const Synergy *s, const Live *a, const Live *b) {
    if (spans(s, a) != spans(s, b)) return spans(s, a) < spans(s, b);
    for (int k = CORES; k <= GB; k++) {
        double of_a = holding(s, a, k) / a->job->gpus, of_b = holding(s, b, k) / b->job->gpus;
        if (of_a != of_b) return of_a > of_b;
    }
    return false;
}

static void sort(const Synergy *s, uint32_t *jobs, uint32_t n,
                 bool (*first)(const Synergy *, const Live *, const Live *)) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t x = jobs[i], at = i;
        for (; at > 0 && first(s, &s->lives[x], &s->lives[jobs[at - 1]]); at--)
            jobs[at] = jobs[at - 1];
        jobs[at] = x;
    }
}

// Placed again where it is, with its share if its best is more. Its iterations of this round are
// counted anew at speed 1, also if nothing was taken from it.
static void give_back(Synergy *s, Live *l) {
    GangDemand d = l->best;
    cut_to_share(s, l, &d);
    for (uint32_t i = 0; i < s->setup.servers; i++) {
        double here = l->held[i].of[GPUS];
        for (int k = 0; k < KINDS; k++) s->rooms[i].used.of[k] -= l->held[i].of[k];
        l->held[i] = times(d, here / l->job->gpus);
        l->held[i].of[GPUS] = here;
    }
    l->done = l->done_before;
    l->attained_s -= round_s;
    take(s, l, 1);
}

// Walks a server's jobs until what they hold beyond their shares covers what `d` lacks there. All
// walked ones give back, also those with nothing to give.
static void squeeze(Synergy *s, uint32_t room, GangDemand d) {
    Room  *r = &s->rooms[room];
    double lack[KINDS], lacks = 0;
    for (int k = 0; k < KINDS; k++) {
        lack[k] = fmax(0, d.of[k] - (s->size.of[k] - r->used.of[k]));
        lacks += lack[k];
    }
    if (lacks > 0) sort(s, r->jobs, r->n_jobs, gives_before);
    uint32_t walked = 0;
    for (; lacks > 0 && walked < r->n_jobs; walked++) {
        const Live *l = &s->lives[r->jobs[walked]];
        double      here = l->held[room].of[GPUS];
        lacks = 0;
        for (int k = 0; k < KINDS; k++) {
            double held = holding(s, l, k) * (here / l->job->gpus);
            lack[k] = fmax(0, lack[k] - fmax(0, held - here * s->share.of[k]));
            lacks += lack[k];
        }
    }
    for (uint32_t i = 0; i < walked; i++) give_back(s, &s->lives[r->jobs[i]]);
}

// Where step (c) makes room. Several GPUs: the lowest server that has them all free. Else those
// with the fewest free GPUs first, as many as it takes.
static void make_room(Synergy *s, const Live *l, const GangDemand *d) {
    uint32_t left = l->job->gpus;
    for (uint32_t i = 0; l->job->gpus > 1 && i < s->setup.servers; i++)
        if (free_gpus(s, i) >= left) {
            squeeze(s, i, *d);
            return;
        }
    for (uint32_t free = 1; left && free <= s->size.of[GPUS]; free++)
        for (uint32_t i = 0; left && i < s->setup.servers; i++) {
            if (free_gpus(s, i) != free) continue;
            uint32_t here = free < left ? free : left;
            squeeze(s, i, times(*d, (double)here / l->job->gpus));
            left -= here;
        }
}

static bool tune(Synergy *s, uint32_t x) {
    Live      *l = &s->lives[x];
    GangDemand d = l->best;
    if (place(s, x, &d)) return true;
    if (cut_to_share(s, l, &d) && place(s, x, &d)) return true;
    make_room(s, l, &d);
    return place(s, x, &d);
}

static void allocate(Synergy *s, uint32_t x) {
    Live  *l = &s->lives[x];
    double free = 0;
    for (uint32_t i = 0; i < s->setup.servers; i++) free += free_gpus(s, i);
    if (free < l->job->gpus) return;
    GangDemand fair = times(s->share, l->job->gpus);
    if (s->setup.share == SYNERGY_FAIR) place(s, x, &fair);
    if (s->setup.share == SYNERGY_GREEDY) place(s, x, &l->best);
    if (s->setup.share == SYNERGY_TUNE && !tune(s, x)) s->stuck = true;
}

static bool larger(const Synergy *s, const Live *a, const Live *b) {
    (void)s;
    return a->job->gpus > b->job->gpus;
}

// Only las picks by GPUs before it places, and then, in tune, places the larger first.
static uint32_t pick(Synergy *s) {
    double   free = s->size.of[GPUS] * s->setup.servers;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_queue; i++) {
        double gpus = s->lives[s->queue[i]].job->gpus;
        bool   picked = s->setup.order != SYNERGY_LAS || gpus <= free;
        if (!picked) continue;
        free -= gpus;
        s->picked[n++] = s->queue[i];
    }
    bool sorted = s->setup.order == SYNERGY_LAS && s->setup.share == SYNERGY_TUNE;
    if (sorted) sort(s, s->picked, n, larger);
    return n;
}

static void end_round(Synergy *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_queue; i++) {
        Live *l = &s->lives[s->queue[i]];
        if (l->holds) {
            let_go(s, l);
            l->left_at = s->now;
        }
        if (l->done == l->job->iterations)
            l->job->end_s = s->now;
        else
            s->queue[kept++] = s->queue[i];
    }
    s->n_queue = kept;
    for (uint32_t i = 0; i < s->setup.servers; i++) s->rooms[i].n_jobs = 0;
}

static void begin_round(Synergy *s) {
    for (; s->arrived < s->n && s->lives[s->arrived].job->arrival_s <= s->now; s->arrived++)
        s->queue[s->n_queue++] = s->arrived;
    sort(s, s->queue, s->n_queue, before);
    for (uint32_t i = 0; i < s->n_queue; i++) {
        Live *l = &s->lives[s->queue[i]];
        l->speed = l->best_speed;
        l->aged = l->aged || s->now - l->left_at > aged_s;
    }
    uint32_t n = pick(s);
    for (uint32_t i = 0; i < n; i++) allocate(s, s->picked[i]);
}

static void set_up(Synergy *s, SynergyJob *jobs) {
    const SynergySetup *u = &s->setup;
    s->size = (GangDemand){{u->gpus, u->cores, u->gb, u->storage_mbps}};
    for (int k = 0; k < KINDS; k++) s->share.of[k] = s->size.of[k] / u->gpus;
    s->lives = arena_new(s->arena, Live, s->n);
    s->queue = arena_new(s->arena, uint32_t, s->n);
    s->picked = arena_new(s->arena, uint32_t, s->n);
    s->rooms = arena_new(s->arena, Room, u->servers);
    for (uint32_t i = 0; i < u->servers; i++)
        s->rooms[i].jobs = arena_new(s->arena, uint32_t, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        jobs[i].end_s = -1;
        s->lives[i] = (Live){.job = &jobs[i], .left_at = jobs[i].arrival_s};
        s->lives[i].held = arena_new(s->arena, GangDemand, u->servers);
        profile(s, &s->lives[i]);
    }
}

// A round without jobs ends the run, even if others would arrive later.
bool synergy_run(const SynergySetup *setup, SynergyJob *jobs, uint32_t n, Arena *a) {
    Synergy s = {.setup = *setup, .arena = a, .n = n};
    set_up(&s, jobs);
    s.now = setup->all_at_once ? 1 : ceil(jobs[0].arrival_s / round_s) * round_s;
    do {
        begin_round(&s);
        s.now += round_s;
        end_round(&s);
    } while (!s.stuck && (s.n_queue || (s.arrived < n && jobs[s.arrived].arrival_s <= s.now)));
    return !s.stuck;
}

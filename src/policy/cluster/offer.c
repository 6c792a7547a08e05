#include "policy/cluster/offer.h"

#include <math.h>

#include "policy/cluster/rank.h"

typedef struct Room {  // on a inn for tasks of one size, when some guests go
    InnLeave leave;
    InnFill  fill;
    uint64_t mask;
    float    lost, redo;  // worth of those that go; and that of the time they need to begin again
    float    away;        // of that worth, what gangs have on other servers
    uint32_t gpus, victims;
    bool     there, filled;
} Room;

static bool suits(const OfferDesk *d, const Inn *h, const Want *w) {
    return w->types == 0 || (w->types >> d->setup->servers[h->server].type & 1) != 0;
}

static uint64_t free_of(const Inn *h, const InnLeave *leave) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < h->n; i++)
        if (!inn_leaves(leave, i)) used |= h->at[i].mask;
    return rank_all(h->gpus) & ~used;
}

bool offer_victims(const OfferDesk *d, const Inn *h, const Want *w, uint32_t gpus, InnLeave *out,
                   uint64_t *mask) {
    Rank r;
    rank_open(&r, h, d->wants);
    return rank_victims(&r, h, w, gpus, d->rules.evict, out, mask);
}

static void make_room(const OfferDesk *d, const Inn *h, const Rank *by, const Want *w,
                      uint32_t gpus, Room *r) {
    r->gpus = gpus;
    r->victims = 0;
    r->lost = r->redo = r->away = 0;
    r->filled = false;
    r->there = rank_victims(by, h, w, gpus, d->rules.evict, &r->leave, &r->mask);
    if (!r->there) return;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        const Want  *x = &d->wants[g->task];
        if (!inn_leaves(&r->leave, i)) continue;
        r->victims++;
        r->lost += inn_worth(g, x) * inn_part(g, x);
        r->away += inn_worth(g, x) * (1 - inn_part(g, x));
        r->redo += x->value * x->restart_s * inn_part(g, x);
    }
}

// With no levels to look at, a inn is worth what its guests are with what they usually have.
static double after(const OfferDesk *d, const Inn *h, const Room *r, const Want *w, uint32_t units,
                    uint32_t rung) {
    int64_t cores = r->fill.cores_milli - (int64_t)units * w->rungs[rung].cores_milli;
    int64_t memory = r->fill.memory_mib - (int64_t)units * w->rungs[rung].memory_mib;
    if (cores < 0 || memory < 0) return -1;
    if (d->rules.blind) {
        double worth = h->worth;
        for (uint32_t i = 0; i < h->n; i++)
            if (inn_leaves(&r->leave, i))
                worth -= inn_worth(&h->at[i], &d->wants[h->at[i].task]) *
                         inn_part(&h->at[i], &d->wants[h->at[i].task]);
        return worth;
    }
    return inn_fill_worth(&r->fill, cores, memory);
}

// What a gang of slices of this size keeps of its rate.
static float slices_leave(const OfferDesk *d, const Want *w, uint32_t gpus) {
    if (gpus == 0 || gpus >= w->gpus) return 1;
    return inn_spread(d->setup, w, (w->gpus + gpus - 1) / gpus);
}

static uint32_t whole(const OfferDesk *d, const Inn *h, const Want *w, uint32_t task, const Room *r,
                      Offer *out) {
    uint32_t n = 0, units = want_units(w, r->gpus);
    float    part = w->gpus > 0 ? (float)r->gpus / (float)w->gpus : 1;
    float    pace = inn_pace(d->setup, w, h->server) * slices_leave(d, w, r->gpus);
    bool     slice = r->gpus < w->gpus, cut = slice && !w->wide;
    uint32_t first = d->rules.blind ? w->usual : 0;
    uint32_t last = d->rules.blind ? w->usual + 1 : w->n_rungs;
    for (uint32_t l = first; l < last; l++) {
        double rest = after(d, h, r, w, units, l);
        if (rest < 0) break;
        if (cut && w->rungs[l].rate * pace < 1) continue;
        float own = w->value * w->rungs[l].rate * part * pace;
        float redo = d->rules.restart * r->redo / w->left_s;
        out[n++] = (Offer){.mask = r->mask,
                           .task = task,
                           .give = (uint16_t)units,
                           .rung = (uint8_t)l,
                           .victims = (uint8_t)r->victims,
                           .gain = own + (float)(rest - h->worth) - redo - (slice ? 0 : r->away) -
                                   d->rules.patience * r->lost,
                           .own = own,
                           .lost = r->lost + r->away,
                           .rate = w->rungs[l].rate * pace};
    }
    return n;
}

// What those on a GPU lose when a task joins them; below 0: it cannot.
static float harm(const OfferDesk *d, const Inn *h, uint64_t mask, uint32_t task, uint32_t *mates) {
    float lost = 0;
    *mates = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        const Want  *x = &d->wants[g->task];
        if ((g->mask & mask) == 0) continue;
        if (mask != (mask & -mask) && g->mask != mask) return -1;
        if (g->fresh || x->class == CLUSTER_NONE) return -1;
        float by = (float)profile_pair(d->setup->profiles, x->class, d->wants[task].class);
        if (!(by > 0) || ++*mates >= d->rules.mates) return -1;
        lost += inn_worth(g, x) * (1 - by);
    }
    return lost;
}

// Guests at whose first GPU one more may sit; each such GPU once.
static void open_seats(const OfferDesk *d, const Inn *h, InnLeave *out) {
    uint64_t seen = 0;
    *out = (InnLeave){{0}};
    for (uint32_t i = 0; i < h->n; i++) {
        uint64_t gpu = h->at[i].mask & -h->at[i].mask;
        uint32_t mates = 0;
        if (gpu == 0 || (seen & gpu) != 0) continue;
        seen |= gpu;
        for (uint32_t k = 0; k < h->n && mates < d->rules.mates; k++) {
            const Guest *g = &h->at[k];
            if ((g->mask & gpu) == 0) continue;
            bool can = !g->fresh && d->wants[g->task].class != CLUSTER_NONE;
            mates = can ? mates + 1 : d->rules.mates;
        }
        if (mates < d->rules.mates) inn_set_leave(out, i, true);
    }
}

typedef struct Seat {
    uint64_t mask;
    float    share, lost;
    uint32_t mates;
} Seat;

typedef struct Seats {  // that tasks of one class and size may take
    uint32_t class, gpus, n;
    Seat at[INN_GUESTS];
} Seats;

static void find_seats(const OfferDesk *d, const Inn *h, const InnLeave *open, uint32_t task,
                       Seats *out) {
    const Want *w = &d->wants[task];
    float       pace = inn_pace(d->setup, w, h->server);
    out->class = w->class;
    out->gpus = w->gpus;
    out->n = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        Seat s = {.mask = h->at[i].mask};
        if (w->gpus == 1 && !inn_leaves(open, i)) continue;
        if (w->gpus == 1) s.mask &= -s.mask;
        if (s.mask == 0 || (w->gpus > 1 && (h->at[i].gpus != w->gpus || h->at[i].sliced))) continue;
        s.lost = harm(d, h, s.mask, task, &s.mates);
        if (s.lost < 0) continue;
        s.share = pace * inn_company(h, d->setup, d->wants, s.mask, task, CLUSTER_NONE);
        if (s.share > 0) out->at[out->n++] = s;
    }
}

static const Seat *best_seat(const Seats *from, const Want *w) {
    float       most = w->value * w->rungs[w->n_rungs - 1].rate, best = 0;
    const Seat *at = NULL;
    for (uint32_t i = 0; i < from->n; i++) {
        const Seat *s = &from->at[i];
        float       gain = w->value * s->share - s->lost;
        if (s->lost >= most || (at != NULL && !(gain > best))) continue;
        best = gain;
        at = s;
    }
    return at;
}

static uint32_t beside(const Inn *h, const Want *w, uint32_t task, const InnFill *f,
                       const Seats *seats, Offer *out) {
    uint32_t    n = 0;
    const Seat *seat = best_seat(seats, w);
    if (seat == NULL) return 0;
    for (uint32_t l = 0; l < w->n_rungs; l++) {
        int64_t cores = f->cores_milli - (int64_t)w->gpus * w->rungs[l].cores_milli;
        int64_t memory = f->memory_mib - (int64_t)w->gpus * w->rungs[l].memory_mib;
        if (cores < 0 || memory < 0) break;
        float  own = w->value * w->rungs[l].rate * seat->share;
        double rest = inn_fill_worth(f, cores, memory);
        out[n++] = (Offer){.mask = seat->mask,
                           .task = task,
                           .give = (uint16_t)w->gpus,
                           .rung = (uint8_t)l,
                           .mates = (uint8_t)seat->mates,
                           .gain = own - seat->lost + (float)(rest - h->worth),
                           .own = own,
                           .lost = seat->lost,
                           .rate = w->rungs[l].rate * seat->share};
    }
    return n;
}

typedef struct RoomKey {  // tasks that need the same find the same room
    uint32_t gpus, cores_milli, memory_mib;
} RoomKey;

enum { ROOMS = 16, SEATS = 16 };

struct OfferSpace {  // what is known of an inn before tasks are looked at
    Room     as_is;  // nobody goes
    float    least;  // worth of the least worthy guest
    float    harm;   // that any company does at least
    Rank     rank;
    InnLeave open;         // see open_seats
    RoomKey  keys[ROOMS];  // the last that were asked for
    Room     rooms[ROOMS];
    Seats    seats[SEATS];
    uint32_t n_rooms, n_seats;  // ever made
    bool     ranked;
};

static bool same_key(const RoomKey *a, const RoomKey *b) {
    return a->gpus == b->gpus && a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib;
}

static Room *room_for(const OfferDesk *d, const Inn *h, OfferSpace *p, const Want *w,
                      uint32_t gpus) {
    uint32_t units = want_units(w, gpus), n = p->n_rooms < ROOMS ? p->n_rooms : ROOMS;
    RoomKey  key = {gpus, units * w->rungs[0].cores_milli, units * w->rungs[0].memory_mib};
    for (uint32_t i = 0; i < n; i++)
        if (same_key(&p->keys[i], &key)) return &p->rooms[i];
    if (!p->ranked) rank_open(&p->rank, h, d->wants);
    p->ranked = true;
    uint32_t at = p->n_rooms++ % ROOMS;
    p->keys[at] = key;
    make_room(d, h, &p->rank, w, gpus, &p->rooms[at]);
    return &p->rooms[at];
}

static void look_round(const OfferDesk *d, const Inn *h, OfferSpace *p) {
    p->as_is.there = p->as_is.filled = true;
    p->as_is.leave = (InnLeave){{0}};
    p->as_is.lost = p->as_is.redo = p->as_is.away = 0;
    p->as_is.victims = p->n_rooms = p->n_seats = 0;
    p->ranked = false;
    p->as_is.mask = free_of(h, &p->as_is.leave);
    p->as_is.gpus = (uint32_t)__builtin_popcountll(p->as_is.mask);
    p->least = p->harm = INFINITY;
    inn_fill(h, &p->as_is.leave, d->wants, &p->as_is.fill);
    open_seats(d, h, &p->open);
    for (uint32_t i = 0; i < h->n; i++) {
        const Want *w = &d->wants[h->at[i].task];
        float       worth = inn_worth(&h->at[i], w);
        if (h->at[i].gpus == 0) continue;
        p->least = fminf(p->least, worth);
        if (w->class != CLUSTER_NONE) p->harm = fminf(p->harm, worth * d->harm[w->class]);
    }
}

static bool as_it_is(const OfferSpace *p, const Inn *h, const Want *w, uint32_t gpus) {
    const InnFill *f = &p->as_is.fill;
    uint32_t       n = want_units(w, gpus);
    return p->as_is.gpus >= gpus && h->n + 1 < INN_GUESTS &&
           f->cores_milli >= (int64_t)n * w->rungs[0].cores_milli &&
           f->memory_mib >= (int64_t)n * w->rungs[0].memory_mib;
}

static bool is_there(const Inn *h, uint32_t task) {
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].task == task) return true;
    return false;
}

static const Seats *seats_for(const OfferDesk *d, const Inn *h, OfferSpace *p, uint32_t task) {
    const Want *w = &d->wants[task];
    uint32_t    n = p->n_seats < SEATS ? p->n_seats : SEATS;
    for (uint32_t i = 0; i < n; i++)
        if (p->seats[i].class == w->class && p->seats[i].gpus == w->gpus) return &p->seats[i];
    Seats *to = &p->seats[p->n_seats++ % SEATS];
    find_seats(d, h, &p->open, task, to);
    return to;
}

static bool may_share(const OfferDesk *d, const Inn *h, const Want *w) {
    return d->rules.mates > 1 && w->class != CLUSTER_NONE && w->gpus > 0 && h->n + 1 < INN_GUESTS;
}

static uint32_t to_one(const OfferDesk *d, const Inn *h, OfferSpace *p, const OfferAsk *ask,
                       Offer *out) {
    const Want *w = &d->wants[ask->task];
    uint32_t    task = ask->task, made = 0;
    bool        cut = w->wide || ask->gpus < w->gpus;
    uint32_t    gpus = cut && h->gpus < ask->gpus ? h->gpus : ask->gpus;
    float       most = w->value * w->rungs[w->n_rungs - 1].rate;
    if (as_it_is(p, h, w, gpus)) {
        uint64_t all = p->as_is.mask;
        uint32_t free = p->as_is.gpus;
        p->as_is.mask = rank_lowest(all, gpus);
        p->as_is.gpus = gpus;
        made = whole(d, h, w, task, &p->as_is, out);
        p->as_is.mask = all;
        p->as_is.gpus = free;
    } else if (most > p->least) {
        Room *room = room_for(d, h, p, w, gpus);
        if (room->there && most > room->lost + (gpus < w->gpus ? 0 : room->away)) {
            if (!room->filled) inn_fill(h, &room->leave, d->wants, &room->fill);
            room->filled = true;
            made = whole(d, h, w, task, room, out);
        }
    }
    if (gpus == w->gpus && most > p->harm && may_share(d, h, w))
        made += beside(h, w, task, &p->as_is.fill, seats_for(d, h, p, task), out + made);
    return made;
}

uint32_t offer_make(const OfferDesk *d, const Inn *h, const OfferAsk *asks, uint32_t n,
                    Offer *out) {
    OfferSpace *p = d->space;
    uint32_t    made = 0;
    if (h->full) return 0;
    look_round(d, h, p);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t first = made;
        if (suits(d, h, &d->wants[asks[k].task]) && !is_there(h, asks[k].task))
            made += to_one(d, h, p, &asks[k], out + made);
        for (uint32_t i = first; i < made; i++) {
            out[i].ask = k;
            out[i].host = CLUSTER_NONE;
        }
    }
    return made;
}

OfferSpace *offer_carve(Carve *from) { return carve(from, OfferSpace, 1); }

void offer_desk_init(OfferDesk *d) {
    const ClusterProfiles *p = d->setup->profiles;
    for (uint32_t a = 0; p != NULL && a < p->n; a++) {
        double gentlest = 0;
        for (uint32_t b = 0; b < p->n; b++) gentlest = fmax(gentlest, profile_pair(p, a, b));
        d->harm[a] = (float)(1 - gentlest);
    }
}

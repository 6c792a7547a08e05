#include "policy/cluster/maifs/offer.h"

#include <math.h>

#include "policy/cluster/maifs/server_plan.h"

typedef struct Room {  // on a inn for tasks of one size, when some guests go
    VictimSet leave;
    Headroom  fill;
    uint64_t  mask;
    float     lost, redo;  // worth of those that go; and that of the time they need to begin again
    float     away;        // of that worth, what gangs have on other servers
    uint32_t  gpus, victims;
    bool      there, filled;
} Room;

static bool suits(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w) {
    return w->types == 0 || (w->types >> d->setup->servers[plan->server].type & 1) != 0;
}

static uint64_t free_of(const ServerPlan *plan, const VictimSet *leave) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < plan->n; i++)
        if (!victim_set_has(leave, i)) used |= plan->at[i].mask;
    return gpu_mask_all(plan->gpus) & ~used;
}

bool offer_victims(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w,
                   uint32_t gpus, VictimSet *out, uint64_t *mask) {
    VictimOrder r;
    victim_order_init(&r, plan, d->utilities);
    return victim_order_pick(&r, plan, w, gpus, d->params.evict, out, mask);
}

static void make_room(const OfferContext *d, const ServerPlan *plan, const VictimOrder *by,
                      const TaskUtility *w, uint32_t gpus, Room *r) {
    r->gpus = gpus;
    r->victims = 0;
    r->lost = r->redo = r->away = 0;
    r->filled = false;
    r->there = victim_order_pick(by, plan, w, gpus, d->params.evict, &r->leave, &r->mask);
    if (!r->there) return;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *x = &d->utilities[g->task];
        if (!victim_set_has(&r->leave, i)) continue;
        r->victims++;
        r->lost += resident_utility(g, x) * resident_fraction(g, x);
        r->away += resident_utility(g, x) * (1 - resident_fraction(g, x));
        r->redo += x->value * x->restart_s * resident_fraction(g, x);
    }
}

// With no levels to look at, a inn is worth what its guests are with what they usually have.
static double after(const OfferContext *d, const ServerPlan *plan, const Room *r,
                    const TaskUtility *w, uint32_t units, uint32_t level) {
    int64_t cores = r->fill.cores_milli - (int64_t)units * w->levels[level].cores_milli;
    int64_t memory = r->fill.memory_mib - (int64_t)units * w->levels[level].memory_mib;
    if (cores < 0 || memory < 0) return -1;
    if (d->params.blind) {
        double worth = plan->worth;
        for (uint32_t i = 0; i < plan->n; i++)
            if (victim_set_has(&r->leave, i))
                worth -= resident_utility(&plan->at[i], &d->utilities[plan->at[i].task]) *
                         resident_fraction(&plan->at[i], &d->utilities[plan->at[i].task]);
        return worth;
    }
    return headroom_utility(&r->fill, cores, memory);
}

// What a gang of slices of this size keeps of its rate.
static float slices_leave(const OfferContext *d, const TaskUtility *w, uint32_t gpus) {
    if (gpus == 0 || gpus >= w->gpus) return 1;
    return server_plan_spread(d->setup, w, (w->gpus + gpus - 1) / gpus);
}

static uint32_t whole(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w,
                      uint32_t task, const Room *r, Offer *out) {
    uint32_t n = 0, units = task_utility_units(w, r->gpus);
    float    part = w->gpus > 0 ? (float)r->gpus / (float)w->gpus : 1;
    float    pace = server_plan_type_rate(d->setup, w, plan->server) * slices_leave(d, w, r->gpus);
    bool     slice = r->gpus < w->gpus, cut = slice && !w->wide;
    uint32_t first = d->params.blind ? w->usual : 0;
    uint32_t last = d->params.blind ? w->usual + 1 : w->n_levels;
    for (uint32_t l = first; l < last; l++) {
        double rest = after(d, plan, r, w, units, l);
        if (rest < 0) break;
        if (cut && w->levels[l].rate * pace < 1) continue;
        float own = w->value * w->levels[l].rate * part * pace;
        float redo = d->params.restart * r->redo / w->left_s;
        out[n++] = (Offer){.mask = r->mask,
                           .task = task,
                           .give = (uint16_t)units,
                           .level = (uint8_t)l,
                           .victims = (uint8_t)r->victims,
                           .gain = own + (float)(rest - plan->worth) - redo -
                                   (slice ? 0 : r->away) - d->params.patience * r->lost,
                           .own = own,
                           .lost = r->lost + r->away,
                           .rate = w->levels[l].rate * pace};
    }
    return n;
}

// What those on a GPU lose when a task joins them; below 0: it cannot.
static float harm(const OfferContext *d, const ServerPlan *plan, uint64_t mask, uint32_t task,
                  uint32_t *mates) {
    float lost = 0;
    *mates = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *x = &d->utilities[g->task];
        if ((g->mask & mask) == 0) continue;
        if (mask != (mask & -mask) && g->mask != mask) return -1;
        if (g->fresh || x->class == CLUSTER_NONE) return -1;
        float by = (float)profile_pair(d->setup->profiles, x->class, d->utilities[task].class);
        if (!(by > 0) || ++*mates >= d->params.mates) return -1;
        lost += resident_utility(g, x) * (1 - by);
    }
    return lost;
}

// Guests at whose first GPU one more may sit; each such GPU once.
static void open_seats(const OfferContext *d, const ServerPlan *plan, VictimSet *out) {
    uint64_t seen = 0;
    *out = (VictimSet){{0}};
    for (uint32_t i = 0; i < plan->n; i++) {
        uint64_t gpu = plan->at[i].mask & -plan->at[i].mask;
        uint32_t mates = 0;
        if (gpu == 0 || (seen & gpu) != 0) continue;
        seen |= gpu;
        for (uint32_t k = 0; k < plan->n && mates < d->params.mates; k++) {
            const Resident *g = &plan->at[k];
            if ((g->mask & gpu) == 0) continue;
            bool can = !g->fresh && d->utilities[g->task].class != CLUSTER_NONE;
            mates = can ? mates + 1 : d->params.mates;
        }
        if (mates < d->params.mates) victim_set_put(out, i, true);
    }
}

typedef struct Seat {
    uint64_t mask;
    float    share, lost;
    uint32_t mates;
} Seat;

typedef struct Seats {  // that tasks of one class and size may take
    uint32_t class, gpus, n;
    Seat at[SERVER_PLAN_RESIDENTS];
} Seats;

static void find_seats(const OfferContext *d, const ServerPlan *plan, const VictimSet *open,
                       uint32_t task, Seats *out) {
    const TaskUtility *w = &d->utilities[task];
    float              pace = server_plan_type_rate(d->setup, w, plan->server);
    out->class = w->class;
    out->gpus = w->gpus;
    out->n = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        Seat s = {.mask = plan->at[i].mask};
        if (w->gpus == 1 && !victim_set_has(open, i)) continue;
        if (w->gpus == 1) s.mask &= -s.mask;
        if (s.mask == 0 || (w->gpus > 1 && (plan->at[i].gpus != w->gpus || plan->at[i].sliced)))
            continue;
        s.lost = harm(d, plan, s.mask, task, &s.mates);
        if (s.lost < 0) continue;
        s.share =
            pace * server_plan_corun(plan, d->setup, d->utilities, s.mask, task, CLUSTER_NONE);
        if (s.share > 0) out->at[out->n++] = s;
    }
}

static const Seat *best_seat(const Seats *from, const TaskUtility *w) {
    float       most = w->value * w->levels[w->n_levels - 1].rate, best = 0;
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

static uint32_t beside(const ServerPlan *plan, const TaskUtility *w, uint32_t task,
                       const Headroom *f, const Seats *seats, Offer *out) {
    uint32_t    n = 0;
    const Seat *seat = best_seat(seats, w);
    if (seat == NULL) return 0;
    for (uint32_t l = 0; l < w->n_levels; l++) {
        int64_t cores = f->cores_milli - (int64_t)w->gpus * w->levels[l].cores_milli;
        int64_t memory = f->memory_mib - (int64_t)w->gpus * w->levels[l].memory_mib;
        if (cores < 0 || memory < 0) break;
        float  own = w->value * w->levels[l].rate * seat->share;
        double rest = headroom_utility(f, cores, memory);
        out[n++] = (Offer){.mask = seat->mask,
                           .task = task,
                           .give = (uint16_t)w->gpus,
                           .level = (uint8_t)l,
                           .mates = (uint8_t)seat->mates,
                           .gain = own - seat->lost + (float)(rest - plan->worth),
                           .own = own,
                           .lost = seat->lost,
                           .rate = w->levels[l].rate * seat->share};
    }
    return n;
}

typedef struct RoomKey {  // tasks that need the same find the same room
    uint32_t gpus, cores_milli, memory_mib;
} RoomKey;

enum { ROOMS = 16, SEATS = 16 };

struct OfferSpace {     // what is known of an inn before tasks are looked at
    Room        as_is;  // nobody goes
    float       least;  // worth of the least worthy guest
    float       harm;   // that any company does at least
    VictimOrder rank;
    VictimSet   open;         // see open_seats
    RoomKey     keys[ROOMS];  // the last that were asked for
    Room        rooms[ROOMS];
    Seats       seats[SEATS];
    uint32_t    n_rooms, n_seats;  // ever made
    bool        ranked;
};

static bool same_key(const RoomKey *a, const RoomKey *b) {
    return a->gpus == b->gpus && a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib;
}

static Room *room_for(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                      const TaskUtility *w, uint32_t gpus) {
    uint32_t units = task_utility_units(w, gpus), n = p->n_rooms < ROOMS ? p->n_rooms : ROOMS;
    RoomKey  key = {gpus, units * w->levels[0].cores_milli, units * w->levels[0].memory_mib};
    for (uint32_t i = 0; i < n; i++)
        if (same_key(&p->keys[i], &key)) return &p->rooms[i];
    if (!p->ranked) victim_order_init(&p->rank, plan, d->utilities);
    p->ranked = true;
    uint32_t at = p->n_rooms++ % ROOMS;
    p->keys[at] = key;
    make_room(d, plan, &p->rank, w, gpus, &p->rooms[at]);
    return &p->rooms[at];
}

static void look_round(const OfferContext *d, const ServerPlan *plan, OfferSpace *p) {
    p->as_is.there = p->as_is.filled = true;
    p->as_is.leave = (VictimSet){{0}};
    p->as_is.lost = p->as_is.redo = p->as_is.away = 0;
    p->as_is.victims = p->n_rooms = p->n_seats = 0;
    p->ranked = false;
    p->as_is.mask = free_of(plan, &p->as_is.leave);
    p->as_is.gpus = (uint32_t)__builtin_popcountll(p->as_is.mask);
    p->least = p->harm = INFINITY;
    server_plan_headroom(plan, &p->as_is.leave, d->utilities, &p->as_is.fill);
    open_seats(d, plan, &p->open);
    for (uint32_t i = 0; i < plan->n; i++) {
        const TaskUtility *w = &d->utilities[plan->at[i].task];
        float              worth = resident_utility(&plan->at[i], w);
        if (plan->at[i].gpus == 0) continue;
        p->least = fminf(p->least, worth);
        if (w->class != CLUSTER_NONE) p->harm = fminf(p->harm, worth * d->harm[w->class]);
    }
}

static bool as_it_is(const OfferSpace *p, const ServerPlan *plan, const TaskUtility *w,
                     uint32_t gpus) {
    const Headroom *f = &p->as_is.fill;
    uint32_t        n = task_utility_units(w, gpus);
    return p->as_is.gpus >= gpus && plan->n + 1 < SERVER_PLAN_RESIDENTS &&
           f->cores_milli >= (int64_t)n * w->levels[0].cores_milli &&
           f->memory_mib >= (int64_t)n * w->levels[0].memory_mib;
}

static bool is_there(const ServerPlan *plan, uint32_t task) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) return true;
    return false;
}

static const Seats *seats_for(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                              uint32_t task) {
    const TaskUtility *w = &d->utilities[task];
    uint32_t           n = p->n_seats < SEATS ? p->n_seats : SEATS;
    for (uint32_t i = 0; i < n; i++)
        if (p->seats[i].class == w->class && p->seats[i].gpus == w->gpus) return &p->seats[i];
    Seats *to = &p->seats[p->n_seats++ % SEATS];
    find_seats(d, plan, &p->open, task, to);
    return to;
}

static bool may_share(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w) {
    return d->params.mates > 1 && w->class != CLUSTER_NONE && w->gpus > 0 &&
           plan->n + 1 < SERVER_PLAN_RESIDENTS;
}

static uint32_t to_one(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                       const OfferAsk *ask, Offer *out) {
    const TaskUtility *w = &d->utilities[ask->task];
    uint32_t           task = ask->task, made = 0;
    bool               cut = w->wide || ask->gpus < w->gpus;
    uint32_t           gpus = cut && plan->gpus < ask->gpus ? plan->gpus : ask->gpus;
    float              most = w->value * w->levels[w->n_levels - 1].rate;
    if (as_it_is(p, plan, w, gpus)) {
        uint64_t all = p->as_is.mask;
        uint32_t free = p->as_is.gpus;
        p->as_is.mask = gpu_mask_lowest(all, gpus);
        p->as_is.gpus = gpus;
        made = whole(d, plan, w, task, &p->as_is, out);
        p->as_is.mask = all;
        p->as_is.gpus = free;
    } else if (most > p->least) {
        Room *room = room_for(d, plan, p, w, gpus);
        if (room->there && most > room->lost + (gpus < w->gpus ? 0 : room->away)) {
            if (!room->filled) server_plan_headroom(plan, &room->leave, d->utilities, &room->fill);
            room->filled = true;
            made = whole(d, plan, w, task, room, out);
        }
    }
    if (gpus == w->gpus && most > p->harm && may_share(d, plan, w))
        made += beside(plan, w, task, &p->as_is.fill, seats_for(d, plan, p, task), out + made);
    return made;
}

uint32_t offer_make(const OfferContext *d, const ServerPlan *plan, const OfferAsk *asks, uint32_t n,
                    Offer *out) {
    OfferSpace *p = d->space;
    uint32_t    made = 0;
    if (plan->full) return 0;
    look_round(d, plan, p);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t first = made;
        if (suits(d, plan, &d->utilities[asks[k].task]) && !is_there(plan, asks[k].task))
            made += to_one(d, plan, p, &asks[k], out + made);
        for (uint32_t i = first; i < made; i++) {
            out[i].ask = k;
            out[i].holder = CLUSTER_NONE;
        }
    }
    return made;
}

OfferSpace *offer_carve(Carve *from) { return carve(from, OfferSpace, 1); }

void offer_context_init(OfferContext *d) {
    const ClusterProfiles *p = d->setup->profiles;
    for (uint32_t a = 0; p != NULL && a < p->n; a++) {
        double gentlest = 0;
        for (uint32_t b = 0; b < p->n; b++) gentlest = fmax(gentlest, profile_pair(p, a, b));
        d->harm[a] = (float)(1 - gentlest);
    }
}

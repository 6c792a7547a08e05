// How many requests are answered in time under overload? Two networks are served live at 0.5 to 3
// times the capacity, with and without admission.
// bench_overload [SECONDS PER CELL] [POLICY] [NETWORK] [NETWORK]
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/table.h"
#include "node/prepared_model.h"
#include "policy/policies.h"
#include "sim/arrivals.h"

enum { TENANTS = 2, QUEUE = 256, LOADS = 6 };

static const double loads[LOADS] = {0.5, 0.8, 1.0, 1.5, 3.0, 10.0};

typedef struct Bench {
    Arena             arena;
    Host              host;
    PreparedModel     stages[TENANTS];
    TimeNs            qos_ns[TENANTS];
    const NodePolicy *policy;
    void             *settings;
    double            seconds;
} Bench;

typedef struct Cell {
    _Atomic uint32_t ends[TENANTS][LIVE_STUCK + 1], met[TENANTS], answered;
    uint32_t         asked[TENANTS];
} Cell;

static void answered(void *self, const EngineResult *a) {
    Cell *c = self;
    atomic_fetch_add(&c->ends[a->tenant][a->end], 1);
    atomic_fetch_add(&c->met[a->tenant], a->outcome == OUTCOME_MET);
    atomic_fetch_add(&c->answered, 1);
}

static void sleep_until(TimeNs t) {
    struct timespec at = {.tv_sec = t / 1000000000, .tv_nsec = t % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
}

static void submit(NodeLive *l, const Bench *b, const Arrival *x, TimeNs origin, bool late_ok,
                   Cell *c) {
    TimeNs        t = origin + x->at;
    EngineRequest ask = {.tenant = x->tenant,
                         .arrival = t,
                         .deadline = t + b->qos_ns[x->tenant],
                         .expire = t + 10 * b->qos_ns[x->tenant],
                         .on_miss = late_ok ? ON_MISS_SERVE_LATE : ON_MISS_REJECT,
                         .done = answered,
                         .self = c};
    c->asked[x->tenant]++;
    if (!node_live_submit(l, &ask)) atomic_fetch_add(&c->answered, 1);
}

static Err play(const Bench *b, double load, bool admit, bool late_ok, Cell *c) {
    NodeLive *l = NULL;
    Arena     a = b->arena;
    double    share[TENANTS], rate = 0;
    Arrivals  all;
    *c = (Cell){0};
    TRY(node_live_create(&l, &(NodeLiveOptions){.admit = admit}));
    for (uint32_t i = 0; i < TENANTS; i++) {
        LiveTenant t = prepared_model_tenant(&b->stages[i], "tenant", b->qos_ns[i], 1);
        uint32_t   number = 0;
        t.queue = QUEUE;
        TRY(node_live_join(l, &t, &number));
        share[i] = load * node_live_cores(l) / TENANTS / (b->stages[i].solo_ns[0] / 1e9);
        rate += share[i];
    }
    TRY(node_live_set_policy(l, b->policy, b->settings, &b->host.machine));
    TRY(arrivals_poisson(&a, (Rng){3}, rate, share, TENANTS, (uint32_t)(rate * b->seconds), &all));
    TimeNs origin = clock_now(clock_monotonic()) + 1000000;
    for (uint32_t i = 0; i < all.n; i++) {
        sleep_until(origin + all.at[i].at);
        submit(l, b, &all.at[i], origin, late_ok, c);
    }
    while (atomic_load(&c->answered) < all.n) sleep_until(clock_now(clock_monotonic()) + 1000000);
    node_live_destroy(l);
    return ERR_OK;
}

static Err measure(const Bench *b, Table *t) {
    static const char *const how[] = {"refused", "late", "no admission"};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < LOADS; i++) {
            Cell   c;
            double useful = 0;
            TRY(play(b, loads[i], k < 2, k == 1, &c));
            table_row(t);
            table_text(t, how[k]);
            table_real(t, loads[i]);
            for (uint32_t n = 0; n < TENANTS; n++) {
                useful += c.met[n] * b->stages[n].solo_ns[0];
                table_real(t, 100.0 * c.met[n] / c.asked[n]);
            }
            table_real(t, useful / (b->seconds * 1e9 * b->host.machine.n_cores));
            table_int(t, c.ends[0][LIVE_REFUSED] + c.ends[1][LIVE_REFUSED]);
            table_int(t, c.ends[0][LIVE_FULL] + c.ends[1][LIVE_FULL]);
            table_int(t, c.ends[0][LIVE_EXPIRED] + c.ends[1][LIVE_EXPIRED]);
        }
    return ERR_OK;
}

static Err run(Bench *b, int argc, char **argv, Table *t) {
    b->seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    b->policy = policies_node_find(argc > 2 ? argv[2] : "slack");
    if (b->policy == NULL) return err_set(ERR_ARG, "no such policy");
    b->settings = arena_alloc(&b->arena, 1, b->policy->settings_size + 1, 64);
    settings_default(&(Settings){b->policy->rows, b->policy->n_rows, b->settings, &b->arena});
    TRY(host_open(&b->host, 0, NULL));
    for (uint32_t i = 0; i < TENANTS; i++) {
        const char *usual = i == 0 ? "squeezenet1_1" : "mobilenet_v2";
        TRY(prepared_model_load(&b->stages[i], argc > 3 + (int)i ? argv[3 + i] : usual, &b->host,
                                &(PrepareOptions){0}));
        b->qos_ns[i] = (TimeNs)(5 * b->stages[i].solo_ns[0]) + 5000000;
    }
    host_quiet(&b->host);
    return measure(b, t);
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "how", .head = "beyond its share"},
        {.key = "load", .head = "load", .decimals = 1},
        {.key = "first", .head = "1st in time", .unit = "%", .decimals = 1},
        {.key = "second", .head = "2nd in time", .unit = "%", .decimals = 1},
        {.key = "useful", .head = "useful share of cores", .decimals = 3},
        {.key = "refused", .head = "refused"},
        {.key = "full", .head = "full"},
        {.key = "expired", .head = "expired"},
    };
    static Bench b;
    Table        t;
    Err          e = arena_init(&b.arena, (size_t)1 << 34);
    table_init(&t, &b.arena, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = run(&b, argc, argv, &t);
    if (e == ERR_OK) e = table_print(&t, stdout);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    for (uint32_t i = 0; i < TENANTS; i++) prepared_model_finish(&b.stages[i]);
    host_close(&b.host);
    arena_finish(&b.arena);
    return e != ERR_OK;
}

// Families of the server as a whole: its engine, its listeners, its log.
#include <string.h>

#include "serve/metrics_int.h"

static void put_plain(MetricsText *t, const char *name, const char *type, const char *help,
                      double x) {
    metrics_family(&t->s, name, type, help);
    sheet_printf(&t->s, "%s ", name);
    sheet_number(&t->s, x);
    sheet_text(&t->s, "\n");
}

static void put_cores(MetricsText *t, const LiveStatus *l) {
    const struct {
        const char *state;
        uint32_t    n;
    } rows[] = {{"present", l->cores}, {"budget", l->budget}, {"busy", l->busy}};
    metrics_family(&t->s, "cotenant_cores", "gauge",
                   "Cores we have, may use now by quota and affinity, and that are in blocks.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        sheet_printf(&t->s, "cotenant_cores{state=\"%s\"} %u\n", rows[i].state, rows[i].n);
}

static void put_engine(MetricsText *t) {
    const LiveStatus *l = t->now->live;
    if (l == NULL) return;
    put_cores(t, l);
    put_plain(t, "cotenant_interference_level", "gauge", "Pressure on shared caches and memory.",
              l->level);
    put_plain(t, "cotenant_throttled", "gauge", "Whether the system gives less than it promises.",
              l->throttled ? 1 : 0);
    put_plain(t, "cotenant_decisions_total", "counter", "Plans that the policy made.",
              (double)l->decisions);
    put_plain(t, "cotenant_refused_plans_total", "counter", "Plans that could not be carried out.",
              (double)l->refused);
    put_plain(t, "cotenant_decision_seconds_total", "counter", "Time the policy took.",
              l->decide_ns / 1e9);
}

typedef struct ListenerFamily {
    const char *name, *type, *help;
    size_t      offset;
    bool        narrow;  // 32 bits
} ListenerFamily;

static const ListenerFamily listener_families[] = {
    {"cotenant_connections", "gauge", "Connections now.", offsetof(ListenerCounts, open), true},
    {"cotenant_connections_total", "counter", "Connections accepted.",
     offsetof(ListenerCounts, accepted), false},
    {"cotenant_connections_refused_total", "counter", "Connections beyond the limit.",
     offsetof(ListenerCounts, refused), false},
    {"cotenant_exchanges_total", "counter", "Requests of the protocol, inference or not.",
     offsetof(ListenerCounts, requests), false},
    {"cotenant_exchanges_bad_total", "counter", "Requests that broke the protocol or a limit.",
     offsetof(ListenerCounts, bad), false},
    {"cotenant_held_bytes", "gauge", "Bodies of requests in memory.",
     offsetof(ListenerCounts, held_bytes), false},
};

static uint64_t listener_value(const ListenerCounts *c, const ListenerFamily *f) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (f->narrow)
        memcpy(&narrow, (const char *)c + f->offset, sizeof narrow);
    else
        memcpy(&wide, (const char *)c + f->offset, sizeof wide);
    return f->narrow ? narrow : wide;
}

static void put_listeners(MetricsText *t) {
    for (size_t f = 0; f < sizeof listener_families / sizeof *listener_families; f++) {
        const ListenerFamily *row = &listener_families[f];
        metrics_family(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; i < 4; i++) {
            if (t->now->names[i] == NULL) continue;
            sheet_printf(&t->s, "%s{listener=\"", row->name);
            sheet_label(&t->s, t->now->names[i]);
            sheet_text(&t->s, "\"} ");
            sheet_printf(&t->s, "%llu\n",
                         (unsigned long long)listener_value(&t->now->listeners[i], row));
        }
    }
}

void metrics_server(MetricsText *t) {
    put_engine(t);
    put_listeners(t);
    put_plain(t, "cotenant_ready", "gauge", "Whether all models that are required can be served.",
              t->now->ready ? 1 : 0);
    put_plain(t, "cotenant_requests_open", "gauge", "Requests on their way.", t->now->asks);
    put_plain(t, "cotenant_log_dropped_total", "counter", "Log lines lost to a full or slow disk.",
              (double)t->now->log_dropped);
    put_plain(t, "cotenant_log_suppressed_total", "counter", "Log lines beyond the rate.",
              (double)t->now->log_suppressed);
}

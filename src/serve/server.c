#include "serve/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/notify.h"
#include "serve/server_int.h"

const char *const server_names[SERVER_LISTENERS] = {"http", "grpc", "metrics", "admin"};

bool server_ready(const void *self) {
    const Server *s = self;
    return s->state == SERVER_SERVING && fleet_ready(s->fleet);
}

static void count_listeners(const void *self, MetricsNow *now) {
    const Server *s = self;
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++) {
        if (s->listeners[i] == NULL) continue;
        now->names[i] = server_names[i];
        now->listeners[i] = listener_counts(s->listeners[i]);
    }
    LoggerCounts lines = logger_counts(s->logger);
    now->log_dropped = lines.dropped;
    now->log_suppressed = lines.suppressed;
}

// Best effort has a deadline only to be ordered by.
static bool aims(const Served *m) { return strcmp(m->config->set.class, "best_effort") != 0; }

static void seat_changed(void *self, const Served *m) {
    Server *s = self;
    if (m->state == FLEET_READY)
        metrics_seat(s->metrics, m->seat, m->name, m->version, aims(m) ? m->target_ns : 0,
                     m->config->set.percentile);
    const char *words[] = {"model loads", "model is ready", "model unloads",
                           "model is not available"};
    LogLevel    level = m->state == FLEET_UNAVAILABLE ? LOG_ERROR : LOG_INFO;
    log_with(s->log, level, words[m->state], log_text("model", m->name),
             log_text("version", m->version), log_real("target_ms", (double)m->target_ns / 1e6),
             log_int("memory_bytes", (int64_t)m->memory_bytes),
             log_text("why", m->reason != NULL ? m->reason : ""));
}

static Err open_log(Server *s) {
    const ServeSettings *set = &s->o.config->serve;
    LoggerOptions        o = {.file = set->log_file, .rate = (uint32_t)set->log_rate};
    TRY(log_level_parse(set->log_level, &o.least));
    TRY(log_format_parse(set->log_format, &o.format));
    TRY(logger_create(&s->logger, &o));
    s->log = logger_log(s->logger);
    return ERR_OK;
}

// First come, first served is what it says: everybody is let in.
static Err open_engine(Server *s) {
    const ServeSettings *set = &s->o.config->serve;
    NodeLiveOptions      o = {.cores = (uint32_t)set->cores,
                              .tenants = LIVE_TENANTS,
                              .requests = (uint32_t)set->requests,
                              .places = (uint32_t)set->places,
                              .admit = strcmp(set->policy, "fcfs") != 0,
                              .watchdog_ns = (TimeNs)set->watchdog_ms * 1000000};
    TRY(host_open(&s->host, (uint32_t)set->cores, set->store[0] != 0 ? set->store : NULL));
    if (s->host.store.why[0] != '\0')
        log_with(s->log, LOG_WARN, "what is measured is not kept",
                 log_text("why", s->host.store.why));
    o.cores = s->host.machine.n_cores;
    return node_live_create(&s->engine, &o);
}

static Err open_parts(Server *s) {
    const ServeSettings *set = &s->o.config->serve;
    TRY(metrics_create(&s->metrics, strcmp(set->metrics_compat, "triton") == 0));
    metrics_engine(s->metrics, s->engine);
    TRY(ledger_create(&s->ledger, (uint32_t)set->why_requests));
    TRY(fleet_create(&s->fleet, &(FleetOptions){.loop = s->loop,
                                                .engine = s->engine,
                                                .host = &s->host,
                                                .policy = s->o.policy,
                                                .policy_settings = s->o.settings,
                                                .changed = seat_changed,
                                                .self = s}));
    TRY(desk_create(&s->desk, &(DeskOptions){.loop = s->loop,
                                             .engine = s->engine,
                                             .fleet = s->fleet,
                                             .metrics = s->metrics,
                                             .ledger = s->ledger,
                                             .log = s->log,
                                             .set = set}));
    TRY(grpc_create(&s->grpc, &(GrpcOptions){.desk = s->desk,
                                             .fleet = s->fleet,
                                             .metrics = s->metrics,
                                             .set = set,
                                             .ready = server_ready,
                                             .self = s}));
    return rest_create(&s->rest, &(RestOptions){.loop = s->loop,
                                                .desk = s->desk,
                                                .fleet = s->fleet,
                                                .metrics = s->metrics,
                                                .ledger = s->ledger,
                                                .engine = s->engine,
                                                .set = set,
                                                .ready = server_ready,
                                                .listeners = count_listeners,
                                                .self = s});
}

static void say_addresses(const Server *s) {
    const char *before = "";
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++) {
        if (s->listeners[i] == NULL) continue;
        (void)fprintf(s->o.out, "%s%s %s", before, server_names[i],
                      listener_address(s->listeners[i]));
        before = ", ";
    }
    (void)fputc('\n', s->o.out);
    (void)fflush(s->o.out);
}

static bool required_fail(const Server *s) {
    bool any = false;
    for (uint32_t i = 0; i < fleet_count(s->fleet); i++) {
        const Served *m = fleet_at(s->fleet, i);
        any = any || (m->state == FLEET_UNAVAILABLE && m->config->set.required);
    }
    return any;
}

static void first_loaded(void *self, uint32_t failed) {
    Server *s = self;
    if (s->state != SERVER_STARTING) return;
    if (failed > 0 && required_fail(s)) {
        s->code = SERVER_MODEL;
        server_stop(s, 0);
        return;
    }
    s->state = SERVER_SERVING;
    notify_say("READY=1");
    say_addresses(s);
}

static void beat(void *self) {
    Server *s = self;
    notify_say("WATCHDOG=1");
    if (loop_arm(s->loop, &s->pulse, loop_now(s->loop) + notify_period()) != ERR_OK)
        log_line(s->log, LOG_ERROR, "no memory for the watchdog's timer");
}

static Err start(Server *s) {
    Err e = server_keep(s, s->o.config);
    if (e != ERR_OK) {
        config_finish(s->o.config);
        free(s->o.config);
        return e;
    }
    TRY(open_log(s));
    TRY(loop_create(&s->loop));
    TRY(server_signals(s));
    TRY(open_engine(s));
    TRY(open_parts(s));
    TRY(server_listen(s));
    s->pulse = (LoopTimer){.fire = beat, .self = s};
    if (notify_period() > 0) beat(s);
    fleet_reload(s->fleet, s->o.config, first_loaded, s);
    return loop_run(s->loop);
}

static void finish(Server *s) {
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++) listener_close(s->listeners[i]);
    rest_destroy(s->rest);
    grpc_destroy(s->grpc);
    if (s->desk != NULL && desk_busy(s->desk) == 0) desk_destroy(s->desk);
    fleet_destroy(s->fleet);
    node_live_destroy(s->engine);
    host_close(&s->host);
    ledger_destroy(s->ledger);
    metrics_destroy(s->metrics);
    loop_destroy(s->loop);
    logger_destroy(s->logger);
}

Err server_run(const ServerOptions *o, int *code) {
    Server s = {.o = *o, .code = 1};
    Err    e = start(&s);
    if (s.state == SERVER_ENDED) log_line(s.log, LOG_INFO, "stopped");
    if (e == ERR_OK && s.code == SERVER_MODEL)
        e = err_set(ERR_INVALID, "a model that is required cannot be served: see the log, or set "
                                 "required: false");
    else if (e == ERR_OK)
        s.code = 0;
    finish(&s);
    server_forget(&s, true);
    free(s.configs);
    *code = s.code;
    return e;
}

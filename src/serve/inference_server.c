// InferenceServer: opens its parts, listens, reloads on SIGHUP, drains and ends on SIGTERM.
#include "serve/inference_server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/warm_memory.h"
#include "net/listener.h"
#include "node/host.h"
#include "serve/dispatcher.h"
#include "serve/grpc/grpc.h"
#include "serve/observe/logger.h"
#include "serve/rest/rest.h"
#include "serve/server_log.h"

typedef enum ServerState {
    SERVER_STARTING,  // loading models
    SERVER_SERVING,
    SERVER_STOPPING,  // signalled: not ready, but still serving
    SERVER_DRAINING,  // no new connections; finishing requests
    SERVER_ENDED,
} ServerState;

enum { SERVER_LISTENERS = 4, CPU_SHIFT = 24 };

typedef struct InferenceServer {
    ServerOptions   o;
    Config        **configs;  // [n_configs] in use by models, newest last
    uint32_t        n_configs;
    bool            reloading;
    Logger         *logger;
    const Log      *log;
    Loop           *loop;
    Budget          memory;  // of all requests: `buffered_mb`
    Budget          large;   // all of it but a reserve for small requests
    Host            host;
    NodeLive       *engine;
    Metrics        *metrics;
    RequestHistory *history;
    ModelRegistry  *registry;
    Dispatcher     *dispatcher;
    Rest           *rest;
    Grpc           *grpc;
    Listener       *listeners[SERVER_LISTENERS];  // http, grpc, metrics, admin; NULL: off
    LoopFd          signals;
    LoopTimer       timer, watchdog_timer;
    TimeNs          until;  // end of draining
    ServerState     state;
    bool            rejected_all, again;  // again: reload after the present load or reload
    TimeNs          began;
    int             code, signal;
} InferenceServer;

static const char *const server_names[SERVER_LISTENERS] = {"http", "grpc", "metrics", "admin"};

// Tells the service manager (systemd) about a state; without one nothing happens.
static void notify_send(const char *state) {
    const char        *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@')) return;
    size_t n = strlen(path);
    if (n >= sizeof to.sun_path) return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') to.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}

// How often the service manager expects WATCHDOG=1, halved; 0: never.
static TimeNs notify_period(void) {
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (us == NULL || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid())) return 0;
    int64_t period = strtoll(us, NULL, 10);
    return period > 0 && period < INT64_MAX / 1000 ? period * 1000 / 2 : 0;
}

enum {
    MAPPED_BYTES = 1 << 18,
    HEAP_STEP = 1 << 20,
    HELD_PARTS = 8,
    RESERVE_PARTS = 8,
    CHECK_NS = 10000000,
    LAST_NS = 2000000000
};

// At most 1/HELD_PARTS of the memory budget, to leave room for models.
static size_t held_bytes(const ServeSettings *s) {
    uint64_t wish = (uint64_t)s->buffered_mb << 20,
             most = cpu_mem_budget(&cgroup_roots) / HELD_PARTS;
    return (size_t)(wish < most ? wish : most);
}

// Memory is short: responses that clients read too slowly are given up, whatever the listener.
static size_t relieve(void *self, size_t bytes) {
    InferenceServer *s = self;
    size_t           freed = 0;
    for (uint32_t i = 0; i < SERVER_LISTENERS && freed < bytes; i++)
        if (s->listeners[i] != NULL)
            freed += listener_relieve(s->listeners[i], NULL, bytes - freed);
    return freed;
}

static ListenerLimits limits_of(const ServeSettings *s) {
    return (ListenerLimits){.connections = (uint32_t)s->connections,
                            .header_bytes = (size_t)s->header_kb << 10,
                            .body_bytes = (size_t)s->body_mb << 20,
                            .header_ns = (TimeNs)s->header_ms * 1000000,
                            .body_ns = (TimeNs)s->body_ms * 1000000,
                            .idle_ns = (TimeNs)s->idle_ms * 1000000,
                            .write_ns = (TimeNs)s->write_ms * 1000000};
}

static Err listen_at(InferenceServer *s, uint32_t i, const char *address, ExchangeHandler handler) {
    ListenerOptions o = {.address = address,
                         .protocol = i == 1 ? LISTENER_HTTP2 : LISTENER_HTTP1,
                         .limits = limits_of(&s->o.config->serve),
                         .handler = handler,
                         .budget = &s->large,
                         .relieve = relieve,
                         .self = s};
    if (strcmp(address, "off") == 0) return ERR_OK;
    Err e = listener_open(&s->listeners[i], s->loop, &o);
    if (e != ERR_OK) s->code = SERVER_BIND;
    return e != ERR_OK ? err_add(e, "%s", server_names[i]) : e;
}

// `admin: http` enables administration on the addresses for inference.
static Err server_listen(InferenceServer *s) {
    const ServeSettings *set = &s->o.config->serve;
    bool                 same = strcmp(set->admin, "http") == 0;
    TRY(listen_at(s, 0, set->http,
                  rest_handler(s->rest, same ? ROUTE_MAIN | ROUTE_ADMIN : ROUTE_MAIN, set->http)));
    TRY(listen_at(s, 1, set->grpc, grpc_handler(s->grpc, same, set->grpc)));
    TRY(listen_at(s, 2, set->metrics, rest_handler(s->rest, ROUTE_OPS, set->metrics)));
    return same ? ERR_OK
                : listen_at(s, 3, set->admin, rest_handler(s->rest, ROUTE_ADMIN, set->admin));
}

static void end(InferenceServer *s) {
    s->state = SERVER_ENDED;
    loop_stop(s->loop);
}

static void check_drained(void *self) {
    InferenceServer *s = self;
    TimeNs           t = loop_now(s->loop);
    bool             over = dispatcher_in_flight(s->dispatcher) == 0;
    for (uint32_t i = 0; i < 2; i++)
        over = over && (s->listeners[i] == NULL || listener_drained(s->listeners[i]));
    if (over || (s->rejected_all && dispatcher_in_flight(s->dispatcher) == 0)) {
        end(s);
        return;
    }
    if (t >= s->until && !s->rejected_all) {
        s->rejected_all = true;
        log_with(s->log, LOG_WARN, "drain time is over: rejecting requests",
                 log_int("n", dispatcher_in_flight(s->dispatcher)));
        dispatcher_reject_all(s->dispatcher);
        s->until = t + LAST_NS;
    } else if (t >= s->until) {
        log_line(s->log, LOG_ERROR, "worker stuck after drain timeout; exiting");
        _exit(1);
    }
    if (loop_arm(s->loop, &s->timer, t + CHECK_NS) != ERR_OK) end(s);
}

static void drain(void *self) {
    InferenceServer *s = self;
    s->state = SERVER_DRAINING;
    s->until = loop_now(s->loop) + (TimeNs)s->o.config->serve.drain_ms * 1000000;
    for (uint32_t i = 0; i < 2; i++)
        if (s->listeners[i] != NULL) listener_drain(s->listeners[i]);
    s->timer.fire = check_drained;
    check_drained(s);
}

static void server_stop(InferenceServer *s, TimeNs delay_ns) {
    bool early = s->state == SERVER_STARTING;
    s->state = SERVER_STOPPING;
    notify_send("STOPPING=1");
    registry_stop_tuning(s->registry);
    log_with(s->log, LOG_INFO, "stopping", log_int("requests", dispatcher_in_flight(s->dispatcher)),
             log_real("delay_s", (double)delay_ns / 1e9));
    s->timer = (LoopTimer){.fire = drain, .self = s};
    if (early || delay_ns == 0 ||
        loop_arm(s->loop, &s->timer, loop_now(s->loop) + delay_ns) != ERR_OK)
        drain(s);
}

static Err server_keep(InferenceServer *s, Config *c) {
    Config **more = realloc(s->configs, (s->n_configs + 1) * sizeof(Config *));
    if (more == NULL) return err_set(ERR_LIMIT, "out of memory");
    s->configs = more;
    s->configs[s->n_configs++] = c;
    return ERR_OK;
}

// Frees configurations no longer in use. The first one has the addresses and limits of the server
// and stays to the end.
static void server_forget(InferenceServer *s, bool all) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_configs; i++) {
        Config *c = s->configs[i];
        if (!all && (i == 0 || registry_uses(s->registry, c))) {
            s->configs[n++] = c;
            continue;
        }
        config_finish(c);
        free(c);
    }
    s->n_configs = n;
}

static void server_reload(InferenceServer *s);

static void reloaded(void *self, uint32_t failed) {
    InferenceServer *s = self;
    s->reloading = false;
    if (failed > 0)
        log_with(s->log, LOG_ERROR, "reloaded in part: models that failed stay as they were",
                 log_int("failed", failed));
    else
        log_line(s->log, LOG_INFO, "reloaded");
    server_forget(s, false);
    if (s->again) server_reload(s);
}

// Models and their settings change; addresses and limits stay as they were at the start.
static void server_reload(InferenceServer *s) {
    s->again = s->reloading;
    if (s->again) return;
    Config *c = calloc(1, sizeof *c);
    log_line(s->log, LOG_INFO, "reloading");
    Err e = c != NULL ? config_load(c, &s->o.sources) : err_set(ERR_LIMIT, "out of memory");
    if (e == ERR_OK) {
        e = server_keep(s, c);
        if (e != ERR_OK) config_finish(c);
    }
    if (e != ERR_OK) {
        log_with(s->log, LOG_ERROR, "not reloaded: nothing has changed",
                 log_text("why", err_why()));
        free(c);
        return;
    }
    s->reloading = true;
    server_log_warnings(s->log, c);
    registry_reload(s->registry, c, reloaded, s);
}

static void handle_signal(InferenceServer *s, int signal) {
    if (signal == SIGHUP) {
        if (s->state == SERVER_SERVING) server_reload(s);
        if (s->state == SERVER_STARTING) s->again = true;
    } else if (signal == SIGUSR1) {
        logger_reopen(s->logger);
    } else if (signal == SIGTERM || signal == SIGINT) {
        if (s->state >= SERVER_STOPPING) _exit(128 + signal);
        s->signal = signal;
        TimeNs delay = (TimeNs)s->o.config->serve.drain_delay_ms * 1000000;
        server_stop(s, signal == SIGINT ? 0 : delay);
    }
}

static void read_signals(void *self, uint32_t events) {
    InferenceServer        *s = self;
    struct signalfd_siginfo info;
    (void)events;
    while (read(s->signals.fd, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(s, (int)info.ssi_signo);
}

static Err server_signals(InferenceServer *s) {
    sigset_t set;
    sigemptyset(&set);
    const int all[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) sigaddset(&set, all[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return err_set(ERR_IO, "cannot block signals: %s", strerror(errno));
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "cannot read signals: %s", strerror(errno));
    s->signals = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = read_signals, .self = s};
    return loop_watch(s->loop, &s->signals);
}

static bool server_ready(const void *self) {
    const InferenceServer *s = self;
    return s->state == SERVER_SERVING && registry_ready(s->registry);
}

static void count_listeners(const void *self, MetricsNow *now) {
    const InferenceServer *s = self;
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++) {
        if (s->listeners[i] == NULL) continue;
        now->names[i] = server_names[i];
        now->listeners[i] = listener_counts(s->listeners[i]);
    }
    now->loop = loop_counts(s->loop);
    LoggerCounts lines = logger_counts(s->logger);
    now->memory = &s->memory;
    now->log_dropped = lines.dropped;
    now->log_suppressed = lines.suppressed;
}

// Best-effort models have a deadline only for ordering.
static bool has_target(const ModelInfo *m) { return m->class != CLASS_BEST_EFFORT; }

static void model_changed(void *self, const ModelInfo *m) {
    InferenceServer *s = self;
    if (m->state == MODEL_READY)
        metrics_register(s->metrics, m->slot, m->name, m->version, has_target(m) ? m->target_ns : 0,
                         m->config->set.percentile);
    server_log_model(s->log, m, s->host.machine.n_cores);
}

static void model_tuned(void *self, const ModelInfo *m, const ModelTuned *t) {
    InferenceServer *s = self;
    if (t->kept == NULL) metrics_tuned(s->metrics, m->slot);
    server_log_tuned(s->log, m, t);
}

static Err open_log(InferenceServer *s) {
    const ServeSettings *set = &s->o.config->serve;
    LoggerOptions        o = {.file = set->log_file, .rate = (uint32_t)set->log_rate};
    TRY(log_level_parse(set->log_level, &o.least));
    TRY(log_format_parse(set->log_format, &o.format));
    TRY(logger_create(&s->logger, &o));
    s->log = logger_log(s->logger);
    return ERR_OK;
}

// The policy fcfs runs without admission control.
static Err open_engine(InferenceServer *s) {
    const ServeSettings *set = &s->o.config->serve;
    NodeLiveOptions      o = {.cores = (uint32_t)set->cores,
                              .tenants = LIVE_TENANTS,
                              .requests = (uint32_t)set->requests,
                              .contexts = (uint32_t)set->concurrency,
                              .admit = strcmp(set->policy, "fcfs") != 0,
                              .watchdog_ns = (TimeNs)set->watchdog_ms * 1000000};
    TRY(host_open(&s->host, (uint32_t)set->cores, set->store[0] != 0 ? set->store : NULL));
    const ProfileStore *store = &s->host.store;
    if (store->why[0] != '\0')
        log_with(s->log, LOG_WARN, "measured profiles are not stored", log_text("why", store->why));
    else
        log_with(s->log, LOG_INFO, "profile store", log_text("file", store->path),
                 log_if(store->read_only, log_bool("read_only", true)));
    o.cores = s->host.machine.n_cores;
    return node_live_create(&s->engine, &o);
}

static Err open_parts(InferenceServer *s) {
    const ServeSettings *set = &s->o.config->serve;
    TRY(metrics_create(&s->metrics, strcmp(set->metrics_compat, "triton") == 0));
    metrics_engine(s->metrics, s->engine);
    TRY(request_history_create(&s->history, (uint32_t)set->why_requests));
    TRY(registry_create(&s->registry, &(ModelRegistryOptions){.loop = s->loop,
                                                              .engine = s->engine,
                                                              .host = &s->host,
                                                              .memory = &s->large,
                                                              .policy = s->o.policy,
                                                              .policy_settings = s->o.settings,
                                                              .changed = model_changed,
                                                              .tuned = model_tuned,
                                                              .self = s}));
    TRY(dispatcher_create(&s->dispatcher, &(DispatcherOptions){.loop = s->loop,
                                                               .engine = s->engine,
                                                               .registry = s->registry,
                                                               .metrics = s->metrics,
                                                               .history = s->history,
                                                               .memory = &s->memory,
                                                               .log = logger_requests(s->logger),
                                                               .set = set}));
    TRY(grpc_create(&s->grpc, &(GrpcOptions){.dispatcher = s->dispatcher,
                                             .registry = s->registry,
                                             .metrics = s->metrics,
                                             .set = set,
                                             .ready = server_ready,
                                             .self = s}));
    return rest_create(&s->rest, &(RestOptions){.loop = s->loop,
                                                .dispatcher = s->dispatcher,
                                                .registry = s->registry,
                                                .metrics = s->metrics,
                                                .history = s->history,
                                                .engine = s->engine,
                                                .memory = &s->large,
                                                .set = set,
                                                .ready = server_ready,
                                                .listeners = count_listeners,
                                                .self = s});
}

static void log_addresses(const InferenceServer *s, const char *msg) {
    LogField f[SERVER_LISTENERS + 2] = {0};
    bool     ready = s->state == SERVER_SERVING;
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++)
        if (s->listeners[i] != NULL)
            f[i] = log_text(server_names[i], listener_address(s->listeners[i]));
    f[SERVER_LISTENERS] =
        log_if(ready, log_real("seconds", log_seconds(clock_monotonic_ns() - s->began)));
    f[SERVER_LISTENERS + 1] = log_if(ready, log_int("models", registry_count_ready(s->registry)));
    log_write(s->log, LOG_INFO, msg, f, SERVER_LISTENERS + 2);
}

static void print_addresses(const InferenceServer *s) {
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

static bool required_model_failed(const InferenceServer *s) {
    bool any = false;
    for (uint32_t i = 0; i < registry_count(s->registry); i++) {
        const ModelInfo *m = registry_at(s->registry, i);
        any = any || (m->state == MODEL_UNAVAILABLE && m->config->set.required);
    }
    return any;
}

static void first_loaded(void *self, uint32_t failed) {
    InferenceServer *s = self;
    if (s->state != SERVER_STARTING) return;
    if (failed > 0 && required_model_failed(s)) {
        s->code = SERVER_MODEL;
        server_stop(s, 0);
        return;
    }
    s->state = SERVER_SERVING;
    notify_send("READY=1");
    log_addresses(s, "ready");
    print_addresses(s);
    if (s->again) server_reload(s);
}

static void send_watchdog(void *self) {
    InferenceServer *s = self;
    notify_send("WATCHDOG=1");
    if (loop_arm(s->loop, &s->watchdog_timer, loop_now(s->loop) + notify_period()) != ERR_OK)
        log_line(s->log, LOG_ERROR, "out of memory for the watchdog timer");
}

static Err log_starting(InferenceServer *s) {
    Arena a = {0};
    Cpu   cpu = {0};
    TRY(arena_init(&a, (size_t)1 << CPU_SHIFT));
    Err e = cpu_read(&a, &cgroup_roots, &cpu);
    if (e == ERR_OK) {
        CpuBudget b = cpu_budget(&cpu, &cgroup_roots);
        server_log_starting(s->log, s->o.config, &b);
    }
    arena_finish(&a);
    return e;
}

static Err start(InferenceServer *s) {
    Err e = server_keep(s, s->o.config);
    if (e != ERR_OK) {
        config_finish(s->o.config);
        free(s->o.config);
        return e;
    }
    // Large blocks are mapped, so that freeing them returns their memory to the system; heaps grow
    // and shrink in large steps, as each step holds a lock that all threads need.
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
    (void)mallopt(M_TOP_PAD, HEAP_STEP);
    (void)mallopt(M_TRIM_THRESHOLD, 4 * HEAP_STEP);
    TRY(open_log(s));
    TRY(log_starting(s));
    TRY(loop_create(&s->loop));
    s->memory.setting = "buffered_mb";
    s->memory.most = held_bytes(&s->o.config->serve);
    s->large.setting = s->memory.setting;
    s->large.most = s->memory.most - s->memory.most / RESERVE_PARTS;
    s->large.whole = &s->memory;
    warm_memory_use(&s->large);
    TRY(server_signals(s));
    TRY(open_engine(s));
    TRY(open_parts(s));
    TRY(server_listen(s));
    log_addresses(s, "listening");
    s->watchdog_timer = (LoopTimer){.fire = send_watchdog, .self = s};
    if (notify_period() > 0) send_watchdog(s);
    registry_reload(s->registry, s->o.config, first_loaded, s);
    return loop_run(s->loop);
}

static void finish(InferenceServer *s) {
    for (uint32_t i = 0; i < SERVER_LISTENERS; i++) listener_close(s->listeners[i]);
    rest_destroy(s->rest);
    grpc_destroy(s->grpc);
    if (s->dispatcher != NULL && dispatcher_in_flight(s->dispatcher) == 0)
        dispatcher_destroy(s->dispatcher);
    registry_destroy(s->registry);
    node_live_destroy(s->engine);
    warm_memory_use(NULL);
    host_close(&s->host);
    request_history_destroy(s->history);
    metrics_destroy(s->metrics);
    loop_destroy(s->loop);
    logger_destroy(s->logger);
}

Err server_run(const ServerOptions *o, int *code) {
    InferenceServer s = {.o = *o, .code = 1, .began = clock_monotonic_ns()};
    Err             e = start(&s);
    if (s.state == SERVER_ENDED) log_line(s.log, LOG_INFO, "stopped");
    if (e == ERR_OK && s.code == SERVER_MODEL)
        e = err_set(ERR_INVALID,
                    "a required model cannot be served: see the log, or set required: false");
    else if (e == ERR_OK)
        s.code = 0;
    finish(&s);
    server_forget(&s, true);
    free(s.configs);
    *code = s.code;
    return e;
}

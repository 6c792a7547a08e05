// cotenant cluster schedule: a policy schedules the pods of a Kubernetes cluster, until SIGINT or
// SIGTERM.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/cluster_args.h"
#include "cli/commands.h"
#include "eval/policy_choice.h"
#include "kube/cluster_kube.h"
#include "kube/kube_config.h"
#include "kube/kube_operator.h"
#include "net/loop.h"

typedef struct Options {
    const char *kubeconfig, *context, *server, *token_file, *scheduler_name, *policy, *estimator;
    const char *experience, *profiles, *namespaces, *node_selector, *tenant_label, *quota, *weights;
    const char *preemption, *lease_namespace, *lease_name, *identity, *records, *switch_file;
    const char *log_format, *log_level, *listen, *extender;
    ArgList     sets;
    StopOptions stops;
    int64_t     seed;
    bool        in_cluster, dry_run, no_lease;
} Options;

typedef struct Run {
    const Options *options;
    Arena         *arena;
    Log            log;
    Loop          *loop;
    LoopFd         signals;
    ClusterKube   *engine;
    KubeOperator  *operator;
} Run;

static void stopped(void *self) {
    const Run *r = self;
    loop_stop(r->loop);
}

static void handle_signal(Run *r, int signal) {
    if (signal == SIGHUP) {
        if (cluster_kube_reload(r->engine) != ERR_OK)
            log_with(&r->log, LOG_ERROR, "not reloaded: nothing has changed",
                     log_text("why", err_why()));
        return;
    }
    log_with(&r->log, LOG_INFO, "stopping", log_int("signal", signal));
    cluster_kube_stop(r->engine, stopped, r);
}

static void read_signals(void *self, uint32_t events) {
    Run                    *r = self;
    struct signalfd_siginfo info;
    (void)events;
    while (read(r->signals.fd, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(r, (int)info.ssi_signo);
}

static Err open_signals(Run *r) {
    const int all[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t  set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sigaddset(&set, all[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return err_set(ERR_IO, "cannot block signals: %s", strerror(errno));
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "cannot read signals: %s", strerror(errno));
    r->signals = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = read_signals, .self = r};
    return loop_watch(r->loop, &r->signals);
}

static void noted(void *self, TimeNs at, const KubeNote *n) {
    const Run *r = self;
    char       by[512] = "";
    (void)at;
    if (n->for_job != NULL)
        (void)snprintf(by, sizeof by, "%s/%s", n->for_job->namespace_name, n->for_job->name);
    bool     quiet = n->kind == KUBE_NOTE_REFUSED || n->kind == KUBE_NOTE_NOT_EVICTED;
    LogLevel level = quiet ? LOG_DEBUG : LOG_INFO;
    log_with(&r->log, level, kube_note_name(n->kind), log_text("namespace", n->job->namespace_name),
             log_text("job", n->job->name), log_if(by[0] != '\0', log_text("for", by)),
             log_if(n->text != NULL, log_text("why", n->text != NULL ? n->text : "")),
             log_if(n->why != NULL,
                    log_text("reason", n->why != NULL ? kube_fit_reason_text(n->why->reason) : "")),
             log_bool("dry_run", r->options->dry_run));
}

static Err read_config(const Options *o, Arena *a, KubeConfig *out) {
    int ways = (o->kubeconfig != NULL) + o->in_cluster + (o->server != NULL);
    if (ways > 1) return err_set(ERR_ARG, "give one of --kubeconfig, --in-cluster and --server");
    if (o->in_cluster) return kube_config_in_cluster(NULL, a, out);
    if (o->server != NULL) {
        TRY(kube_config_url(o->server, a, out));
        out->token_file = o->token_file;
        return ERR_OK;
    }
    const char *path = o->kubeconfig != NULL ? o->kubeconfig : getenv("KUBECONFIG");
    const char *home = getenv("HOME");
    if (path == NULL && getenv("KUBERNETES_SERVICE_HOST") != NULL)
        return kube_config_in_cluster(NULL, a, out);
    if (path == NULL && home != NULL) path = arena_printf(a, "%s/.kube/config", home);
    if (path == NULL) return err_set(ERR_ARG, "give --kubeconfig, --in-cluster or --server");
    return kube_config_read(path, o->context, a, out);
}

static Err read_preemption(const char *word, KubePreemption *out) {
    static const char *const words[] = {"none", "priority", "policy"};
    char                     meant[TEXT_MEANT];
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (KubePreemption)i;
            return ERR_OK;
        }
    return err_set(ERR_ARG, "--preemption %.40s: %s", word,
                   text_meant(word, words, 3, "choose none, priority or policy", meant));
}

static Err read_beliefs(const Options *o, const ClusterPolicy *p, Arena *a,
                        KubeBeliefOptions *out) {
    Information info = {.estimator = ESTIMATOR_OFF};
    TRY(information_set_estimator(&info, o->estimator));
    (void)a;
    bool predicts = p->knows >= CLUSTER_PREDICTED && info.estimator != ESTIMATOR_OFF;
    *out = (KubeBeliefOptions){.kind = info.estimator,
                               .knows = predicts ? CLUSTER_PREDICTED : CLUSTER_BLIND,
                               .profiles = o->profiles,
                               .experience = o->experience};
    return ERR_OK;
}

static const char *identity_of(const Options *o, Arena *a) {
    char host[256] = "cotenant";
    if (o->identity != NULL) return o->identity;
    (void)gethostname(host, sizeof host - 1);
    return arena_printf(a, "%s_%d", host, (int)getpid());
}

static Err read_options(Run *r, ClusterKubeOptions *out) {
    const Options *o = r->options;
    Arena         *a = r->arena;
    PolicyChoice   choice;
    KubeConfig    *config = arena_new(a, KubeConfig, 1);
    TenantShares  *shares = arena_new(a, TenantShares, 1);
    TRY(policy_choice_read(TIER_CLUSTER, o->policy, &o->sets, a, &choice));
    TRY(read_config(o, a, config));
    TRY(tenant_shares_read(o->quota, o->weights, a, shares));
    *out = (ClusterKubeOptions){
        .config = config,
        .state = {.scheduler_name = o->scheduler_name,
                  .tenant_label = o->tenant_label,
                  .namespaces = o->namespaces,
                  .node_selector = o->node_selector},
        .lease = {.namespace_name = o->lease_namespace != NULL       ? o->lease_namespace
                                    : config->namespace_name != NULL ? config->namespace_name
                                                                     : "kube-system",
                  .name = o->lease_name,
                  .identity = identity_of(o, a)},
        .policy = choice.policy,
        .settings = choice.settings,
        .shares = shares,
        .seed = (uint64_t)o->seed,
        .switch_file = o->switch_file,
        .dry_run = o->dry_run,
        .no_lease = o->no_lease,
        .log = &r->log,
        .stops = {.min_run = o->stops.min_run_s * CLUSTER_SECOND,
                  .max_stops = (uint32_t)o->stops.max_stops},
        .hooks = {.noted = noted, .self = r}};
    TRY(read_preemption(o->preemption, &out->preemption));
    return read_beliefs(o, choice.policy, a, &out->beliefs);
}

// Pages, metrics, records and the extender. kube-scheduler binds what the extender places.
static Err open_operator(Run *r, ClusterKubeOptions *k) {
    const Options  *o = r->options;
    KubeRecordHead *head = arena_new(r->arena, KubeRecordHead, 1);
    bool            elects = !o->no_lease && !o->dry_run && o->extender == NULL;
    const char     *address = o->listen != NULL ? o->listen : "127.0.0.1:10260";
    if (strcmp(address, "off") == 0) address = NULL;
    *head = (KubeRecordHead){.policy = k->policy->name,
                             .scheduler = o->scheduler_name,
                             .sets = o->sets.at,
                             .n_sets = o->sets.n,
                             .profiles = o->profiles,
                             .quota = o->quota,
                             .weights = o->weights,
                             .rules = cluster_kube_rules(k)};
    KubeOperatorOptions x = {.listen = address,
                             .extender = o->extender,
                             .records = o->records,
                             .head = head,
                             .next = k->hooks,
                             .scheduler_name = o->scheduler_name,
                             .lease_name = elects ? o->lease_name : NULL,
                             .server = k->config->server,
                             .switch_file = o->switch_file,
                             .dry_run = o->dry_run,
                             .may_listen = o->listen == NULL,
                             .log = &r->log};
    TRY(kube_operator_create(&r->operator, & x));
    k->hooks = kube_operator_hooks(r->operator);
    if (o->extender != NULL) k->dry_run = true;
    return ERR_OK;
}

static Err run_engine(Run *r) {
    ClusterKubeOptions o;
    TRY(log_format_parse(r->options->log_format, &r->log.format));
    TRY(log_level_parse(r->options->log_level, &r->log.min_level));
    TRY(read_options(r, &o));
    TRY(open_operator(r, &o));
    TRY(loop_create(&r->loop));
    TRY(open_signals(r));
    TRY(cluster_kube_create(&r->engine, r->loop, &o));
    TRY(kube_operator_start(r->operator, r->loop, r->engine));
    log_with(&r->log, LOG_INFO, "scheduling", log_text("server", o.config->server),
             log_text("scheduler_name", r->options->scheduler_name),
             log_text("policy", o.policy->name), log_bool("dry_run", r->options->dry_run));
    return loop_run(r->loop);
}

static Err close_run(Run *r) {
    kube_operator_stop(r->operator);
    cluster_kube_destroy(r->engine);
    if (r->loop != NULL && r->signals.fd > 0) {
        loop_forget(r->loop, &r->signals);
        (void)close(r->signals.fd);
    }
    loop_destroy(r->loop);
    return kube_operator_destroy(r->operator);
}

static Err schedule(const void *options, Arena *a) {
    Run r = {.options = options,
             .arena = a,
             .log = {.out = stderr, .min_level = LOG_INFO, .clock = clock_realtime()}};
    Err e = run_engine(&r);
    if (e != ERR_OK) {
        char why[512];  // closing may fail too; the first fault counts
        (void)snprintf(why, sizeof why, "%s", err_why());
        (void)close_run(&r);
        return err_set(e, "%s", why);
    }
    return close_run(&r);
}

static uint32_t fill_rows(Options *o, ArgRow *to) {
    const ArgRow rows[] = {
        {"Cluster", ARG_GROUP, NULL, NULL, NULL, 0, 0},
        {"kubeconfig", ARG_TEXT, &o->kubeconfig, "FILE",
         "how to reach the API server (default KUBECONFIG, in a pod its service account, or "
         "~/.kube/config)",
         0, 0},
        {"context", ARG_TEXT, &o->context, "NAME", "of the kubeconfig (default its current one)", 0,
         0},
        {"in-cluster", ARG_FLAG, &o->in_cluster, NULL, "use the pod's service account", 0, 0},
        {"server", ARG_TEXT, &o->server, "URL", "API server without a kubeconfig", 0, 0},
        {"token-file", ARG_TEXT, &o->token_file, "FILE", "bearer token for --server", 0, 0},
        {"scheduler-name", ARG_TEXT, &o->scheduler_name, "NAME",
         "schedules pods with this schedulerName (default cotenant)", 0, 0},
        {"namespaces", ARG_TEXT, &o->namespaces, "LIST", "only pods of these (default all)", 0, 0},
        {"node-selector", ARG_TEXT, &o->node_selector, "SELECTOR",
         "only nodes with these labels, such as pool=gpu (default all)", 0, 0},
        {"Policy", ARG_GROUP, NULL, NULL, NULL, 0, 0},
        {"policy", ARG_TEXT, &o->policy, "NAME", "cluster policy (default maifs)", 0, 0},
        {"set", ARG_LIST, &o->sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
        {"estimator", ARG_TEXT, &o->estimator, "KIND",
         "what is believed of work left and rates: off, own or shared (default shared)", 0, 0},
        {"experience", ARG_TEXT, &o->experience, "FILE",
         "the estimator's records, read at the start and kept at the end", 0, 0},
        {"profiles", ARG_TEXT, &o->profiles, "FILE|NAME",
         "profiles of job classes (default the shipped ones)", 0, 0},
        {"seed", ARG_INT, &o->seed, "S", "of the policy's random numbers (default 1)", 0,
         INT32_MAX},
        {"Tenants", ARG_GROUP, NULL, NULL, NULL, 0, 0},
        {"tenant-label", ARG_TEXT, &o->tenant_label, "LABEL",
         "a pod's tenant is this label (default its namespace)", 0, 0},
        CLUSTER_TENANT_ARGS(o),
        {"Preemption", ARG_GROUP, NULL, NULL, NULL, 0, 0},
        {"preemption", ARG_TEXT, &o->preemption, "HOW",
         "none; priority: gangs of lower priority give way; policy: as the policy decides, never "
         "for a lower priority (default priority)",
         0, 0},
        {"min-run", ARG_INT, &o->stops.min_run_s, "S",
         "seconds that a gang runs before it is preempted (default 300)", 0, INT32_MAX},
        {"max-stops", ARG_INT, &o->stops.max_stops, "N",
         "preemptions of a gang, at most; 0: any number (default 4)", 0, INT32_MAX},
        {"switch-file", ARG_TEXT, &o->switch_file, "FILE",
         "YAML with act: all, bind (no evictions and resizes) or none; read again when it changes, "
         "and "
         "on SIGHUP",
         0, 0},
        {"Operation", ARG_GROUP, NULL, NULL, NULL, 0, 0},
        {"dry-run", ARG_FLAG, &o->dry_run, NULL, "decide and log, write nothing", 0, 0},
        {"no-lease", ARG_FLAG, &o->no_lease, NULL,
         "without leader election: only where no other instance runs", 0, 0},
        {"lease-namespace", ARG_TEXT, &o->lease_namespace, "NAME",
         "of the lease (default the kubeconfig's or the pod's)", 0, 0},
        {"lease-name", ARG_TEXT, &o->lease_name, "NAME", "of the lease (default cotenant)", 0, 0},
        {"identity", ARG_TEXT, &o->identity, "NAME",
         "of this instance in the lease (default its host and process)", 0, 0},
        {"listen", ARG_TEXT, &o->listen, "ADDRESS",
         "metrics, health, why, progress reports: ADDRESS:PORT, or off (default 127.0.0.1:10260)",
         0, 0},
        {"extender", ARG_TEXT, &o->extender, "ADDRESS",
         "answers kube-scheduler as its extender there, and binds nothing by itself", 0, 0},
        {"records", ARG_TEXT, &o->records, "FILE",
         "decisions, their outcomes and ended jobs, a JSON line each; see cluster replay", 0, 0},
        {"log-format", ARG_TEXT, &o->log_format, "F", "logfmt or json (default logfmt)", 0, 0},
        {"log-level", ARG_TEXT, &o->log_level, "L", "debug, info, warn or error (default info)", 0,
         0},
    };
    memcpy(to, rows, sizeof rows);
    return sizeof rows / sizeof *rows;
}

enum { ROWS = 42 };

int cmd_cluster_schedule(const Command *c, int argc, char **argv) {
    ArgRow  rows[ROWS];
    Options o = {.scheduler_name = "cotenant",
                 .policy = "maifs",
                 .estimator = "shared",
                 .preemption = "priority",
                 .lease_name = "cotenant",
                 .log_format = "logfmt",
                 .log_level = "info",
                 .stops = {300, 4},
                 .seed = 1};
    int     code = args_parse(c, rows, fill_rows(&o, rows), argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : command_run(schedule, &o);
}

#include "eval/cluster_whatif.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/text.h"
#include "cluster/profile/profiles.h"

typedef struct Variant {  // under construction
    const WhatIfSpec *spec;
    const TraceRun   *base;
    const char       *text;    // of its changes
    const char       *change;  // that is read
    ServerList        servers;
    PolicyChoice      choice;
    const char       *policy;  // its name
    ArgList           sets;
    TenantShares      tenants;
    Arena            *arena;
} Variant;

static Err bad(const Variant *v, const char *reason) {
    return err_set(ERR_ARG, "--try %s: %s", v->change, reason);
}

static double decimal_or(const char *text, double otherwise) {
    int64_t v = 0;
    if (decimal_read(text, 1000000, INT64_C(1000000000000000), &v) != DECIMAL_OK) return otherwise;
    return (double)v / 1e6;
}

static Err price_of(const char *word, Arena *a, GpuPrices *p) {
    const char *is = strchr(word, '=');
    double      v = decimal_or(is != NULL ? is + 1 : word, -1);
    if (v < 0 || is == word)
        return err_set(ERR_ARG, "--price %s: give a price per GPU hour, as 2.5 or V100=2.5,T4=0.4",
                       word);
    if (is == NULL && p->any >= 0)
        return err_set(ERR_ARG, "--price %s: a second price for all types", word);
    if (is == NULL) {
        p->any = v;
        return ERR_OK;
    }
    if (p->n == PROFILE_TYPES)
        return err_set(ERR_LIMIT, "--price: more than %d types of GPU", PROFILE_TYPES);
    p->type[p->n] = arena_printf(a, "%.*s", (int)(is - word), word);
    p->price[p->n++] = v;
    return ERR_OK;
}

Err gpu_prices_read(const char *text, Arena *a, GpuPrices *out) {
    const char **words = NULL;
    uint32_t     n = 0;
    GpuPrices    p = {.any = -1};
    TRY(option_list_words("price", text, a, &words, &n));
    for (uint32_t i = 0; i < n; i++) TRY(price_of(words[i], a, &p));
    *out = p;
    return ERR_OK;
}

// Negative: there is none.
static double price(const GpuPrices *p, const char *type) {
    for (uint32_t i = 0; i < p->n; i++)
        if (strcasecmp(p->type[i], type) == 0) return p->price[i];
    return p->any;
}

static Err check_prices(const GpuPrices *p, const ServerList *l) {
    for (uint32_t i = 0; p != NULL && i < l->n; i++) {
        const char *type = l->at[i].gpu_type;
        if (price(p, type) >= 0) continue;
        return type[0] != '\0'
                   ? err_set(ERR_ARG, "--price: none for GPU type '%s'; add %s=PRICE", type, type)
                   : err_set(ERR_ARG,
                             "--price: servers have no GPU type; give one price for all, or "
                             "the type by --gpu");
    }
    return ERR_OK;
}

// The first n servers; beyond the base's, copies of these in turn.
static Err set_servers(Variant *v, uint64_t n) {
    const ServerList *had = &v->base->servers;
    ServerList        l = {.n = (uint32_t)n, .racks = had->racks};
    if (n < 1 || n > SERVERS_MAX) return bad(v, "it leaves no servers, or too many");
    l.at = arena_try_new(v->arena, ServerSpec, l.n);
    if (l.at == NULL) return err_set(ERR_LIMIT, "no memory for %u servers", l.n);
    for (uint32_t i = 0; i < l.n; i++) {
        l.at[i] = had->at[i % had->n];
        if (i >= had->n) l.at[i].name = arena_printf(v->arena, "more%u", i - had->n);
        l.gpus += l.at[i].gpus;
    }
    v->servers = l;
    return ERR_OK;
}

static Err change_servers(Variant *v, const char *value) {
    int64_t  n = 0;
    bool     more = value[0] == '+', less = value[0] == '-';
    uint32_t had = v->base->servers.n;
    if (decimal_read(value + (more || less), 1, SERVERS_MAX, &n) != DECIMAL_OK)
        return bad(v, "give a number of servers, as 10, +2 or -1");
    if (less && n >= had) return bad(v, "it leaves no servers");
    return set_servers(v, (uint64_t)(more ? had + n : less ? had - n : n));
}

static Err unknown_type(const Variant *v, const char *type) {
    const ClusterProfiles *p = v->base->run.profiles;
    char                   meant[TEXT_MEANT], *lower = arena_str(v->arena, type);
    const char            *list = "";
    if (p == NULL)
        return bad(v, "speeds of GPU types come from --profiles; add --profiles default");
    for (uint32_t i = 0; i < p->n_types; i++)
        list =
            arena_printf(v->arena, "%s%s%s", list, i > 0 ? ", " : "the profiles have ", p->type[i]);
    for (char *c = lower; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
    const char *hint = text_meant(lower, (const char *const *)p->type, p->n_types, list, meant);
    return bad(v, arena_printf(v->arena, "there is no GPU type '%.40s'; %s", type, hint));
}

static Err set_type(Variant *v, const char *from, const char *type) {
    const ClusterProfiles *p = v->base->run.profiles;
    uint32_t               changed = 0;
    ServerSpec            *at = arena_try_new(v->arena, ServerSpec, v->servers.n);
    if (p == NULL || profile_type(p, type) == PROFILE_NONE) return unknown_type(v, type);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u servers", v->servers.n);
    for (uint32_t i = 0; i < v->servers.n; i++) {
        at[i] = v->servers.at[i];
        if (from != NULL && strcasecmp(at[i].gpu_type, from) != 0) continue;
        at[i].gpu_type = type;
        changed++;
    }
    v->servers.at = at;
    return changed > 0 ? ERR_OK : bad(v, "no server has the first of these types");
}

static Err change_type(Variant *v, const char *value) {
    const char *colon = strchr(value, ':');
    if (colon == NULL) return set_type(v, NULL, value);
    return set_type(v, arena_printf(v->arena, "%.*s", (int)(colon - value), value), colon + 1);
}

// key: "weight:TENANT" or "quota:TENANT".
static Err change_tenant(Variant *v, const char *key, const char *value) {
    const JobList *l = &v->base->jobs;
    const char    *tenant = strchr(key, ':') + 1;
    char           meant[TEXT_MEANT];
    uint32_t       i = 0;
    while (i < l->n_tenants && strcmp(l->tenants[i], tenant) != 0) i++;
    if (i == l->n_tenants)
        return bad(v, arena_printf(v->arena, "the trace has no tenant '%.60s'; %s", tenant,
                                   text_meant(tenant, l->tenants, l->n_tenants,
                                              "cluster trace stats lists them", meant)));
    const char  *share = arena_printf(v->arena, "%s=%s", tenant, value);
    bool         quota = key[0] == 'q';
    TenantShares changed;
    Err e = tenant_shares_change(&v->tenants, quota ? share : NULL, quota ? NULL : share, v->arena,
                                 &changed);
    if (e != ERR_OK) return err_add(e, "--try %s", v->change);
    v->tenants = changed;
    return ERR_OK;
}

static Err change_set(Variant *v, const char *word) {
    if (v->sets.n == ARG_LIST_MAX) return bad(v, "too many settings");
    v->sets.at[v->sets.n++] = word;
    return ERR_OK;
}

static Err change(Variant *v, const char *word) {
    static const char *const keys[] = {"servers", "gpu", "policy", "weight", "quota"};
    const char              *is = strchr(word, '=');
    char                     meant[TEXT_MEANT];
    v->change = word;
    if (is == NULL || is == word || is[1] == '\0')
        return bad(v, "write KEY=VALUE, as servers=10, gpu=A100, policy=maifs or weight:team=2");
    const char *key = arena_printf(v->arena, "%.*s", (int)(is - word), word), *value = is + 1;
    if (strcmp(key, "servers") == 0) return change_servers(v, value);
    if (strcmp(key, "gpu") == 0) return change_type(v, value);
    if (strncmp(key, "weight:", 7) == 0 || strncmp(key, "quota:", 6) == 0)
        return change_tenant(v, key, value);
    if (strcmp(key, "policy") == 0) {
        v->policy = value;
        return ERR_OK;
    }
    if (strchr(key, '.') != NULL) return change_set(v, word);
    const char *noun = arena_printf(v->arena, "%.*s", (int)strcspn(key, ":"), key);
    const char *hint =
        text_meant(noun, keys, sizeof keys / sizeof *keys,
                   "servers, gpu, policy, weight:TENANT, quota:TENANT or POLICY.KEY", meant);
    return bad(v, arena_printf(v->arena, "there is no '%.40s' to change; %s", key, hint));
}

// Settings of --set that belong to another policy do not count for this variant.
static Err choose(Variant *v) {
    const ArgList *given = v->spec->base.sets;
    size_t         n = strlen(v->policy);
    ArgList        sets = {.option = given->option};
    for (uint32_t i = 0; i < given->n; i++)
        if (strncmp(given->at[i], v->policy, n) == 0 && given->at[i][n] == '.')
            sets.at[sets.n++] = given->at[i];
    for (uint32_t i = 0; i < v->sets.n; i++) {
        if (sets.n == ARG_LIST_MAX) return bad(v, "too many settings");
        sets.at[sets.n++] = v->sets.at[i];
    }
    if (v->sets.n > 0) sets.option = "try";
    Err e = policy_choice_read(TIER_CLUSTER, v->policy, &sets, v->arena, &v->choice);
    return e == ERR_OK || v->sets.n > 0 ? e : err_add(e, "--try %s", v->text);
}

static Err prepare(const WhatIfSpec *spec, const TraceRun *base, const char *text, Arena *a,
                   Variant *v) {
    const char **words = NULL;
    uint32_t     n = 0;
    *v = (Variant){.spec = spec,
                   .base = base,
                   .text = text != NULL ? text : "base",
                   .servers = base->servers,
                   .choice = base->choice,
                   .policy = base->choice.info.name,
                   .arena = a};
    if (base->run.tenants != NULL) v->tenants = *base->run.tenants;
    if (text == NULL) return ERR_OK;
    TRY(option_list_words("try", text, a, &words, &n));
    bool servers = false;  // before types: a type is set on the servers that there will be
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(words[i], "servers=", 8) == 0) {
            if (servers) return err_set(ERR_ARG, "--try %s: servers is changed twice", text);
            TRY(change(v, words[i]));
            servers = true;
        }
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(words[i], "servers=", 8) != 0) TRY(change(v, words[i]));
    return choose(v);
}

typedef struct HeldGpus {  // GPU time held, by price
    const Variant *v;
    TimeNs         mark;
    double         used_milli, cost_milli;  // thousandths of GPUs in use, and their price per hour
    double         gpu_ns, cost_ns;         // integrals, in thousandths
} HeldGpus;

static void held_until(HeldGpus *h, TimeNs now) {
    double ns = (double)(now - h->mark);
    h->gpu_ns += h->used_milli * ns;
    h->cost_ns += h->cost_milli * ns;
    h->mark = now;
}

static void count_used(HeldGpus *h, const ClusterView *view) {
    const ServerSpec *at = h->v->servers.at;
    const GpuPrices  *p = h->v->spec->prices;
    h->used_milli = h->cost_milli = 0;
    for (uint32_t i = 0; i < view->setup->n_servers; i++) {
        double used = (double)at[i].gpus * CLUSTER_WHOLE_GPU - view->servers[i].gpu_milli;
        h->used_milli += used;
        if (p != NULL) h->cost_milli += used * price(p, at[i].gpu_type);
    }
}

// Before a decision jobs may have ended; after it jobs hold what they hold until the next event.
static void before(void *self, const ClusterView *view, const void *state) {
    (void)state;
    held_until(self, view->now);
}

static void after(void *self, const ClusterView *view, const ClusterAction *plan, uint32_t n) {
    (void)plan;
    (void)n;
    count_used(self, view);
}

// GPUs of types that the job accepts, in all, and within its tenant's limit.
static bool fits(const Variant *v, const JobList *jobs, const Job *j) {
    const ServerList *l = &v->servers;
    uint64_t          gpus = 0;
    uint32_t          limit = tenant_shares_limit(&v->tenants, job_tenant(jobs, j));
    if (limit > 0 && j->gpus > limit) return false;
    for (uint32_t i = 0; i < l->n && gpus < j->gpus; i++) {
        bool ok = j->gpu_types == 0;
        for (uint32_t t = 0; t < jobs->n_gpu_types && !ok; t++)
            ok = (j->gpu_types >> t & 1) != 0 && strcmp(jobs->gpu_types[t], l->at[i].gpu_type) == 0;
        if (ok) gpus += l->at[i].gpus;
    }
    return gpus >= j->gpus;
}

static uint32_t count_too_large(const Variant *v, const JobList *jobs, const Job **first) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < jobs->n; i++) {
        if (fits(v, jobs, &jobs->at[i])) continue;
        if (n++ == 0) *first = &jobs->at[i];
    }
    return n;
}

static Err simulate(const Variant *v, Arena *a, ClusterVariant *out) {
    ClusterRun    run = v->base->run;
    ClusterResult r;
    HeldGpus      held = {.v = v, .mark = v->base->jobs.at[0].submit};
    const double  hour = 3600e9;
    run.servers = &v->servers;
    run.tenants = &v->tenants;
    run.watch = before;
    run.after = after;
    run.watcher = &held;
    TRY(trace_run_choose(v->base, &v->choice, a, &run));
    TRY(cluster_simulate(&run, a, &r));
    TRY(cluster_summary(&run, &r, a, &out->summary));
    held_until(&held, r.last);
    out->gpu_hours = held.gpu_ns / CLUSTER_WHOLE_GPU / hour;
    out->cost = held.cost_ns / CLUSTER_WHOLE_GPU / hour;
    out->preemptions = r.preemptions;
    double hours = (double)(r.last - r.first) / hour;
    for (uint32_t i = 0; i < v->servers.n; i++) {
        const ServerSpec *s = &v->servers.at[i];
        out->owned_gpu_hours += s->gpus * hours;
        if (v->spec->prices != NULL)
            out->owned_cost += s->gpus * hours * price(v->spec->prices, s->gpu_type);
    }
    out->use = out->owned_gpu_hours > 0 ? out->gpu_hours / out->owned_gpu_hours : 0;
    return ERR_OK;
}

static Err run(const Variant *v, Arena *a, ClusterVariant *out) {
    const Job *first = NULL;
    *out = (ClusterVariant){.label = v->text,
                            .policy = v->choice.info.name,
                            .servers = v->servers.n,
                            .gpus = v->servers.gpus};
    out->too_large = count_too_large(v, &v->base->jobs, &first);
    if (out->too_large > 0) {
        out->error = arena_printf(a,
                                  "%u of %u jobs do not fit, such as %.60s with %u GPUs%s; leave "
                                  "them out by --max-gpus%s",
                                  out->too_large, v->base->jobs.n, first->id, first->gpus,
                                  first->gpu_types != 0 ? " of certain types" : "",
                                  first->gpu_types != 0 ? ", or ignore types by --any-type" : "");
        return ERR_OK;
    }
    size_t mark = a->used;
    Err    e = simulate(v, a, out);
    arena_rewind(a, mark);
    if (e == ERR_LIMIT) return e;
    if (e != ERR_OK) out->error = arena_printf(a, "%s", err_why());
    return ERR_OK;
}

// Durations of the trace hold on the base's GPU type; work is time on the profiles' first one.
static Err rebase_work(const WhatIfSpec *spec, TraceRun *x) {
    const ClusterProfiles *p = x->run.profiles;
    if (spec->gpu_type == NULL) return ERR_OK;
    uint32_t type = p != NULL ? profile_type(p, spec->gpu_type) : PROFILE_NONE;
    if (type == PROFILE_NONE)
        return err_set(ERR_ARG,
                       "--gpu %s: the profiles have no such type; --profiles default has "
                       "v100, p100, t4, k80, a10 and a100",
                       spec->gpu_type);
    for (uint32_t i = 0; i < x->jobs.n && x->run.class_of != NULL; i++) {
        const ClusterProfile *c = &p->at[x->run.class_of[i]];
        Job                  *j = &x->jobs.at[i];
        if (!(c->iteration_s[0] > 0) || !(c->iteration_s[type] > 0) || j->work < 0) continue;
        double work = (double)j->work * c->iteration_s[0] / c->iteration_s[type];
        j->work = work < (double)JOB_TIME_MAX ? (TimeNs)(work + 0.5) : JOB_TIME_MAX;
    }
    for (uint32_t i = 0; i < x->servers.n; i++) x->servers.at[i].gpu_type = spec->gpu_type;
    return ERR_OK;
}

Err whatif_run(const WhatIfSpec *spec, Arena *a, WhatIfTable *out) {
    uint32_t  n = spec->tries->n + 1;
    TraceRun *base = arena_new(a, TraceRun, 1);
    Variant  *all = arena_new(a, Variant, n);
    TRY(trace_run_open(&spec->base, a, base));
    TRY(rebase_work(spec, base));
    for (uint32_t i = 0; i < n; i++) {
        TRY(prepare(spec, base, i > 0 ? spec->tries->at[i - 1] : NULL, a, &all[i]));
        TRY(check_prices(spec->prices, &all[i].servers));
    }
    *out = (WhatIfTable){.trace = base->jobs.name,
                         .like = base->like,
                         .jobs = base->jobs,
                         .at = arena_new(a, ClusterVariant, n),
                         .n = n};
    for (uint32_t i = 0; i < n; i++) TRY(run(&all[i], a, &out->at[i]));
    if (out->at[0].error != NULL) return err_set(ERR_ARG, "%s", out->at[0].error);
    return ERR_OK;
}

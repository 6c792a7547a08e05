#include "tests/kube/slow_fit.h"

#include <string.h>

static int  below(Rng *r, int n) { return (int)rng_below(r, (uint64_t)n); }
static bool one_in(Rng *r, int n) { return below(r, n) == 0; }

static SlowTerm random_term(Rng *r) {
    return (SlowTerm){below(r, SLOW_APPS + 2) - 2, below(r, 3), one_in(r, 2) ? 0 : below(r, 4)};
}

void slow_random_pod(Rng *r, const SlowCluster *c, SlowPod *p) {
    *p = (SlowPod){.space = below(r, 2),
                   .app = below(r, SLOW_APPS),
                   .version = below(r, 2),
                   .cpu = 500 * below(r, 4),
                   .port = one_in(r, 6) ? 8000 + below(r, 2) : 0,
                   .on = one_in(r, 4) ? -1 : below(r, c->n_nodes),
                   .leaving = one_in(r, 8),
                   .tolerates = one_in(r, 4),
                   .want_zone = one_in(r, 6) ? below(r, 3) : -1,
                   .shun_rack = one_in(r, 6) ? below(r, 3) : -1,
                   .n_near = one_in(r, 4) ? 1 + below(r, SLOW_TERMS) : 0,
                   .n_apart = one_in(r, 4) ? 1 + below(r, SLOW_TERMS) : 0,
                   .n_spread = one_in(r, 4) ? 1 + below(r, SLOW_TERMS) : 0};
    for (int i = 0; i < SLOW_TERMS; i++) {
        p->near[i] = random_term(r);
        p->apart[i] = random_term(r);
        p->spread[i] = (SlowSpread){random_term(r), 1 + below(r, 2), 1 + below(r, 3),
                                    one_in(r, 3),   one_in(r, 3),    one_in(r, 3)};
        p->spread[i].term.spaces = 0;
    }
}

void slow_random(Rng *r, SlowCluster *c) {
    *c = (SlowCluster){.n_nodes = 1 + below(r, SLOW_NODES), .n_pods = 1 + below(r, SLOW_PODS)};
    for (int i = 0; i < 2; i++) c->team[i] = below(r, 2);
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i] = (SlowNode){.cpu = 2000 + 1000 * below(r, 4),
                                 .pods = 3 + below(r, 4),
                                 .zone = below(r, 4) - 1,
                                 .rack = below(r, 4) - 1,
                                 .taint = one_in(r, 4) ? 1 + below(r, 2) : 0,
                                 .closed = one_in(r, 10)};
    for (int i = 0; i < c->n_pods; i++) slow_random_pod(r, c, &c->pods[i]);
}

// The domain of a node; -1: it has no such label.
static int domain(const SlowCluster *c, int node, int topology) {
    if (topology == 2) return node;
    return topology == 0 ? c->nodes[node].zone : c->nodes[node].rack;
}

static bool selects(const SlowCluster *c, const SlowTerm *t, const SlowPod *owner,
                    const SlowPod *p) {
    bool app = t->app == -1 || (t->app == -2 ? p->app != 0 : t->app == p->app);
    bool space = t->spaces == 2 || (t->spaces == 0 && p->space == owner->space) ||
                 (t->spaces == 1 && p->space == 1) || (t->spaces == 3 && c->team[p->space] == 0);
    return app && space;
}

static bool selected(const SlowPod *p, const SlowNode *n) {
    return (p->want_zone < 0 || n->zone == p->want_zone) &&
           (p->shun_rack < 0 || n->rack != p->shun_rack);
}

static bool all_near(const SlowCluster *c, const SlowPod *p, const SlowPod *x) {
    for (int i = 0; i < p->n_near; i++)
        if (!selects(c, &p->near[i], p, x)) return false;
    return true;
}

static bool near_enough(const SlowCluster *c, const SlowPod *p, int node) {
    bool met = true, any = false;
    for (int i = 0; i < p->n_near; i++) {
        int  d = domain(c, node, p->near[i].topology);
        bool here = false;
        if (d < 0) return false;
        for (int k = 0; k < c->n_pods; k++) {
            const SlowPod *x = &c->pods[k];
            if (x == p || x->on < 0 || !all_near(c, p, x)) continue;
            int other = domain(c, x->on, p->near[i].topology);
            any = any || other >= 0;
            here = here || other == d;
        }
        met = met && here;
    }
    return met || (!any && all_near(c, p, p));
}

static bool collides(const SlowCluster *c, const SlowPod *owner, const SlowPod *other, int here,
                     int there) {
    for (int i = 0; i < owner->n_apart; i++) {
        int d = domain(c, here, owner->apart[i].topology);
        if (d >= 0 && d == domain(c, there, owner->apart[i].topology) &&
            selects(c, &owner->apart[i], owner, other))
            return true;
    }
    return false;
}

static bool counts(const SlowCluster *c, const SlowSpread *s, const SlowPod *p, const SlowPod *x) {
    return selects(c, &s->term, p, x) && (!s->by_version || x->version == p->version);
}

static bool eligible(const SlowCluster *c, const SlowPod *p, const SlowSpread *s, int node) {
    const SlowNode *n = &c->nodes[node];
    for (int i = 0; i < p->n_spread; i++)
        if (domain(c, node, p->spread[i].term.topology) < 0) return false;
    return (s->ignores_affinity || selected(p, n)) &&
           (!s->heeds_taints || n->taint == 0 || p->tolerates);
}

static int in_domain(const SlowCluster *c, const SlowPod *p, const SlowSpread *s, int d) {
    int n = 0;
    for (int k = 0; k < c->n_pods; k++) {
        const SlowPod *x = &c->pods[k];
        if (x == p || x->on < 0 || x->leaving || !eligible(c, p, s, x->on)) continue;
        n += domain(c, x->on, s->term.topology) == d && counts(c, s, p, x);
    }
    return n;
}

static bool spread_enough(const SlowCluster *c, const SlowPod *p, const SlowSpread *s, int node) {
    int  d = domain(c, node, s->term.topology), domains = 0, least = 0;
    bool seen[SLOW_NODES + 4] = {false};
    if (d < 0) return false;
    for (int i = 0; i < c->n_nodes; i++) {
        int e = domain(c, i, s->term.topology);
        if (!eligible(c, p, s, i) || seen[e]) continue;
        seen[e] = true;
        int n = in_domain(c, p, s, e);
        if (domains++ == 0 || n < least) least = n;
    }
    if (domains < s->min_domains) least = 0;
    return in_domain(c, p, s, d) + counts(c, s, p, p) - least <= s->skew;
}

static bool has_room(const SlowCluster *c, const SlowPod *p, int node, bool *slots) {
    int cpu = p->cpu, pods = 1;
    for (int k = 0; k < c->n_pods; k++) {
        const SlowPod *x = &c->pods[k];
        if (x == p || x->on != node) continue;
        cpu += x->cpu;
        pods++;
    }
    *slots = pods <= c->nodes[node].pods;
    return p->cpu == 0 || cpu <= c->nodes[node].cpu;
}

static KubeFitReason fit_others(const SlowCluster *c, const SlowPod *p, int node) {
    for (int i = 0; i < p->n_spread; i++)
        if (!spread_enough(c, p, &p->spread[i], node)) return FIT_SPREAD;
    if (p->n_near > 0 && !near_enough(c, p, node)) return FIT_AFFINITY;
    for (int k = 0; k < c->n_pods; k++)
        if (&c->pods[k] != p && c->pods[k].on >= 0 &&
            collides(c, p, &c->pods[k], node, c->pods[k].on))
            return FIT_ANTI_AFFINITY;
    for (int k = 0; k < c->n_pods; k++)
        if (&c->pods[k] != p && c->pods[k].on >= 0 &&
            collides(c, &c->pods[k], p, c->pods[k].on, node))
            return FIT_EXISTING_ANTI_AFFINITY;
    return FIT_OK;
}

KubeFitReason slow_fit(const SlowCluster *c, int pod, int node, bool resources) {
    const SlowPod  *p = &c->pods[pod];
    const SlowNode *n = &c->nodes[node];
    bool            slots, room = has_room(c, p, node, &slots);
    if (p->leaving) return FIT_TERMINATING;
    if (n->closed && !p->tolerates) return FIT_UNSCHEDULABLE;
    if (n->taint != 0 && !p->tolerates) return FIT_TAINT;
    if (!selected(p, n)) return FIT_SELECTOR;
    for (int k = 0; k < c->n_pods; k++)
        if (&c->pods[k] != p && c->pods[k].on == node && p->port != 0 && c->pods[k].port == p->port)
            return FIT_PORTS;
    if (resources && !slots) return FIT_PODS;
    if (resources && !room) return FIT_INSUFFICIENT;
    return fit_others(c, p, node);
}

json_t *slow_node_json(const SlowCluster *c, int node) {
    static const char *const effects[] = {"", "NoSchedule", "NoExecute"};
    const SlowNode          *n = &c->nodes[node];
    json_t                  *labels = json_pack("{s:o}", "host", json_sprintf("h%d", node));
    json_t                  *taints = json_array();
    if (n->zone >= 0) (void)json_object_set_new(labels, "zone", json_sprintf("z%d", n->zone));
    if (n->rack >= 0) (void)json_object_set_new(labels, "rack", json_sprintf("r%d", n->rack));
    if (n->taint != 0)
        (void)json_array_append_new(taints,
                                    json_pack("{ssss}", "key", "k", "effect", effects[n->taint]));
    return json_pack("{s{soso}s{sbso}s{s{soso}}}", "metadata", "name", json_sprintf("n%d", node),
                     "labels", labels, "spec", "unschedulable", n->closed, "taints", taints,
                     "status", "allocatable", "cpu", json_sprintf("%dm", n->cpu), "pods",
                     json_sprintf("%d", n->pods));
}

static json_t *selector_json(const SlowTerm *t) {
    if (t->app == -1) return json_object();
    if (t->app == -2)
        return json_pack("{s[{ssss s[s]}]}", "matchExpressions", "key", "app", "operator", "NotIn",
                         "values", "a0");
    return json_pack("{s{so}}", "matchLabels", "app", json_sprintf("a%d", t->app));
}

static const char *const topologies[] = {"zone", "rack", "host"};

static json_t *term_json(const SlowTerm *t) {
    json_t *o = json_pack("{soss}", "labelSelector", selector_json(t), "topologyKey",
                          topologies[t->topology]);
    if (t->spaces == 1) (void)json_object_set_new(o, "namespaces", json_pack("[s]", "n1"));
    if (t->spaces == 2) (void)json_object_set_new(o, "namespaceSelector", json_object());
    if (t->spaces == 3)
        (void)json_object_set_new(o, "namespaceSelector",
                                  json_pack("{s{ss}}", "matchLabels", "team", "t0"));
    return o;
}

static json_t *terms_json(const SlowTerm *t, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) (void)json_array_append_new(list, term_json(&t[i]));
    return json_pack("{so}", "requiredDuringSchedulingIgnoredDuringExecution", list);
}

static json_t *spread_json(const SlowPod *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->n_spread; i++) {
        const SlowSpread *s = &p->spread[i];
        json_t           *keys = s->by_version ? json_pack("[s]", "version") : json_array();
        (void)json_array_append_new(
            list, json_pack("{sisisssosssssoss}", "maxSkew", s->skew, "minDomains", s->min_domains,
                            "topologyKey", topologies[s->term.topology], "labelSelector",
                            selector_json(&s->term), "nodeAffinityPolicy",
                            s->ignores_affinity ? "Ignore" : "Honor", "nodeTaintsPolicy",
                            s->heeds_taints ? "Honor" : "Ignore", "matchLabelKeys", keys,
                            "whenUnsatisfiable", "DoNotSchedule"));
    }
    return list;
}

static json_t *affinity_json(const SlowPod *p) {
    json_t *o = json_pack("{soso}", "podAffinity", terms_json(p->near, p->n_near),
                          "podAntiAffinity", terms_json(p->apart, p->n_apart));
    if (p->shun_rack >= 0)
        (void)json_object_set_new(
            o, "nodeAffinity",
            json_pack("{s{s[{s[{ssss s[o]}]}]}}", "requiredDuringSchedulingIgnoredDuringExecution",
                      "nodeSelectorTerms", "matchExpressions", "key", "rack", "operator", "NotIn",
                      "values", json_sprintf("r%d", p->shun_rack)));
    return o;
}

static json_t *containers_json(const SlowPod *p) {
    json_t *c = json_pack("{sss{s{so}}}", "name", "c", "resources", "requests", "cpu",
                          json_sprintf("%dm", p->cpu));
    if (p->port != 0)
        (void)json_object_set_new(c, "ports", json_pack("[{si}]", "hostPort", p->port));
    return json_pack("[o]", c);
}

json_t *slow_pod_json(const SlowCluster *c, int pod, unsigned version) {
    const SlowPod *p = &c->pods[pod];
    json_t        *meta = json_pack(
               "{sososos{soso}}", "name", json_sprintf("p%d", pod), "namespace",
               json_sprintf("n%d", p->space), "resourceVersion", json_sprintf("%u", version), "labels",
               "app", json_sprintf("a%d", p->app), "version", json_sprintf("v%d", p->version));
    json_t *spec = json_pack("{sssoso}", "schedulerName", "cotenant", "containers",
                             containers_json(p), "affinity", affinity_json(p));
    (void)json_object_set_new(spec, "topologySpreadConstraints", spread_json(p));
    if (p->on >= 0) (void)json_object_set_new(spec, "nodeName", json_sprintf("n%d", p->on));
    if (p->leaving)
        (void)json_object_set_new(meta, "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
    (void)json_object_set_new(meta, "uid", json_sprintf("u%u", version));
    if (p->tolerates)
        (void)json_object_set_new(spec, "tolerations", json_pack("[{ss}]", "operator", "Exists"));
    if (p->want_zone >= 0)
        (void)json_object_set_new(spec, "nodeSelector",
                                  json_pack("{so}", "zone", json_sprintf("z%d", p->want_zone)));
    return json_pack("{soso}", "metadata", meta, "spec", spec);
}

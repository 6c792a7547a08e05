// cotenant cluster replay: asks the policy again for every recorded decision of the Kubernetes
// scheduler; the plans must be the same.
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/cluster_args.h"
#include "eval/policy_choice.h"
#include "kube/kube_beliefs.h"
#include "kube/kube_replay.h"

typedef struct Options {
    const char *path;
    bool        json;
} Options;

static Err policy_of(const KubeRecordHead *h, Arena *a, KubeReplayRun *run) {
    PolicyChoice choice;
    ArgList      sets = {.option = "set", .n = h->n_sets};
    if (h->n_sets > ARG_LIST_MAX) return err_set(ERR_INVALID, "a record with too many settings");
    for (uint32_t i = 0; i < h->n_sets; i++) sets.at[i] = h->sets[i];
    TRY(policy_choice_read(TIER_CLUSTER, h->policy, &sets, a, &choice));
    run->policy = choice.policy;
    run->settings = choice.settings;
    return ERR_OK;
}

// As the scheduler itself makes them from its options.
static Err choose(void *self, KubeReplayRun *run, Arena *a) {
    const KubeRecordHead *h = &run->head;
    KubeBeliefs          *b = arena_new(a, KubeBeliefs, 1);
    TenantShares         *shares = arena_new(a, TenantShares, 1);
    KubeBeliefOptions     o = {.kind = ESTIMATOR_OFF, .profiles = h->profiles};
    (void)self;
    TRY(policy_of(h, a, run));
    TRY(kube_beliefs_init(b, &o, a));
    TRY(tenant_shares_read(h->quota, h->weights, a, shares));
    run->profiles = &b->profiles;
    run->shares = shares;
    return ERR_OK;
}

static void print_text(const Options *o, const KubeReplayCounts *c) {
    double hours = (double)(c->to - c->from) / 3.6e12;
    printf("%s: %llu decisions of %llu leader(s) in %.2f h, %llu outcomes, %llu ended jobs\n",
           o->path, (unsigned long long)c->decisions, (unsigned long long)c->headers, hours,
           (unsigned long long)c->outcomes, (unsigned long long)c->jobs);
    if (c->cut) puts("the last line is incomplete: the scheduler was killed");
    if (c->full) puts("recording ended at the limit of the file");
    printf("same plan: %llu of %llu\n", (unsigned long long)c->same,
           (unsigned long long)c->decisions);
    if (c->first == 0) return;
    printf("first difference: line %llu\n  recorded %s\n  again    %s\n",
           (unsigned long long)c->first, c->recorded, c->again);
}

static int print_json(const KubeReplayCounts *c) {
    return command_json(json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:b,s:b,s:s?,s:s?}", "decisions", (json_int_t)c->decisions,
        "same", (json_int_t)c->same, "leaders", (json_int_t)c->headers, "outcomes",
        (json_int_t)c->outcomes, "jobs", (json_int_t)c->jobs, "first_difference",
        (json_int_t)c->first, "hours", (double)(c->to - c->from) / 3.6e12, "incomplete", c->cut,
        "full", c->full, "recorded", c->recorded, "again", c->again));
}

static Err replay(const void *options, Arena *a) {
    const Options   *o = options;
    KubeReplayCounts c = {0};
    TRY(kube_replay(o->path, choose, NULL, a, &c));
    if (o->json)
        (void)print_json(&c);
    else
        print_text(o, &c);
    if (c.same == c.decisions) return ERR_OK;
    return err_set(ERR_INVALID, "%s: %llu of %llu plans are not the recorded ones", o->path,
                   (unsigned long long)(c.decisions - c.same), (unsigned long long)c.decisions);
}

int cmd_cluster_replay(const Command *c, int argc, char **argv) {
    Options      o = {.json = false};
    uint32_t     n_rest = 0;
    const ArgRow rows[] = {{"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0}};
    int          code = args_parse(c, rows, 1, argc, argv, &o.path, 1, 1, &n_rest);
    return code >= 0 ? code : command_run(replay, &o);
}

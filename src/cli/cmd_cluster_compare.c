// cotenant cluster compare: policies of a cluster on the same jobs, by trace, servers and load.
#include "base/parallel_for.h"
#include "cli/cluster_args.h"
#include "cli/commands.h"
#include "cli/compare_args.h"
#include "eval/cluster_compare.h"

enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones
enum { OWN_ROWS = 8 };
static const char usual_subject[] = "maifs";

typedef struct Options {
    CompareArgs         common;
    ClusterScenarioArgs scenario;
    ArgList             sets;
    const char         *subject, *ladder;
    int64_t             seeds, seed;
    double              error;
    bool                ablate, untimed;
} Options;

static Err read_params(const Options *o, Arena *a, ClusterCompareParams *p) {
    *p = (ClusterCompareParams){.common = {.seeds = (uint32_t)o->seeds,
                                           .first_seed = (uint64_t)o->seed,
                                           .threads = parallel_threads(o->common.threads),
                                           .timed = !o->untimed,
                                           .curves = o->common.page != NULL},
                                .error = o->error};
    TRY(cluster_scenario_args_common(&o->scenario, a, &p->scenario));
    TRY(option_list_words("trace", o->scenario.trace, a, &p->traces, &p->n_traces));
    TRY(option_list_words("servers", o->scenario.servers, a, &p->servers, &p->n_servers));
    return option_list_numbers("load", o->scenario.load, 0, 1000, a, &p->loads, &p->n_loads);
}

static Err choose(const Options *o, Arena *a, PolicyChoices *c, const char **subject) {
    TRY(policy_choices_read(TIER_CLUSTER, o->common.policies, &o->sets, a, c));
    if (o->ablate) TRY(policy_choices_variants(a, "parts", c));
    if (o->ladder != NULL) TRY(policy_choices_variants(a, o->ladder, c));
    *subject = o->subject != NULL ? o->subject : usual_subject;
    if (policy_choices_find(c, *subject) != NULL) return ERR_OK;
    if (o->subject != NULL)
        return err_set(ERR_ARG, "--subject %s: it takes no part; name it in --policies",
                       o->subject);
    *subject = c->at[0].label;
    return ERR_OK;
}

static Err compare(const void *options, Arena *a) {
    const Options       *o = options;
    ClusterCompareParams p;
    PolicyChoices        c;
    Progress             bar;
    Comparison           out = {0};
    TRY(read_params(o, a, &p));
    TRY(choose(o, a, &c, &p.common.subject));
    p.common.progress = compare_args_progress(&bar, cluster_compare_runs(&p, c.n));
    Err e = cluster_compare(&p, &c, a, &out);
    if (p.common.progress != NULL) progress_end(&bar);
    return e == ERR_OK ? compare_args_write(&o->common, &out, "Policies on clusters of GPUs", a)
                       : e;
}

int cmd_cluster_compare(const Command *c, int argc, char **argv) {
    Options o = {.seeds = 5, .seed = FIRST_SEED};
    ArgRow  rows[OWN_ROWS + COMPARE_ARG_ROWS + CLUSTER_SCENARIO_ARG_ROWS] = {
         {"subject", ARG_TEXT, &o.subject, "NAME",
          "policy that the others are compared with (default maifs, or the first)", 0, 0},
         {"seeds", ARG_INT, &o.seeds, "N", "number of seeds, each with its own jobs (default 5)", 1,
          COMPARISON_SEEDS},
         {"first-seed", ARG_INT, &o.seed, "S",
          "first seed; 100 to 999999 draw jobs that no policy was trained on (default 101)", 0,
          INT64_MAX / 2},
         {"error", ARG_REAL, &o.error, "E",
          "durations are predicted, off by a factor of e^E on average (default: exact)", 0, 10},
         {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
         {"ablate", ARG_FLAG, &o.ablate, NULL, "also maifs without each of its parts", 0, 0},
         {"ladder", ARG_TEXT, &o.ladder, "NAME",
          "also variants of maifs, part by part: coordination", 0, 0},
         {"no-clock", ARG_FLAG, &o.untimed, NULL,
          "do not time decisions: the same seeds give the same bytes", 0, 0},
    };
    compare_args_rows(&o.common, "such as fifo,srtf,maifs (default all)", rows + OWN_ROWS);
    cluster_scenario_args_rows(&o.scenario, rows + OWN_ROWS + COMPARE_ARG_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    return command_run(compare, &o);
}

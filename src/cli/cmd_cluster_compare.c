// Policies of a cluster against each other on the same jobs, in tables, as JSON, on a page.
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "eval/cluster_compare.h"
#include "cli/commands.h"
#include "base/parallel_for.h"
#include "base/option_list.h"
#include "cli/scene_args.h"

enum { FIRST_SEED = 101 };  // settings of policies were chosen on lower ones
enum { OWN_ROWS = 11, RUNS_MAX = 10000000 };
static const char usual_champion[] = "maifs";

typedef struct Options {
    SceneArgs   scene;
    ArgList     sets;
    const char *policies, *champion, *page;
    int64_t     seeds, seed, threads;
    double      error;
    bool        json, ablate, untimed;
} Options;

static Err read_rules(const Options *o, Arena *a, ClusterCompareParams *r) {
    *r = (ClusterCompareParams){.error = o->error,
                                .seeds = (uint32_t)o->seeds,
                                .first_seed = (uint64_t)o->seed,
                                .measure = !o->untimed,
                                .curves = o->page != NULL,
                                .threads = parallel_threads(o->threads)};
    TRY(scene_args_common(&o->scene, a, &r->scene));
    TRY(option_list_words("trace", o->scene.trace, a, &r->traces, &r->n_traces));
    TRY(option_list_words("servers", o->scene.servers, a, &r->servers, &r->n_servers));
    return option_list_numbers("load", o->scene.load, 0, 1000, a, &r->loads, &r->n_loads);
}

static Err check_size(const ClusterCompareParams *r, uint32_t n_policies) {
    uint64_t cells = (uint64_t)r->n_traces * r->n_servers * r->n_loads;
    if (cells * n_policies * r->seeds <= RUNS_MAX) return ERR_OK;
    return err_set(ERR_ARG, "%llu cells of %u policies with %u seeds are more than %d runs",
                   (unsigned long long)cells, n_policies, r->seeds, RUNS_MAX);
}

static Err choose(const Options *o, Arena *a, ClusterChoices *c, const char **champion) {
    TRY(cluster_choice_read(o->policies, &o->sets, a, c));
    if (o->ablate) TRY(cluster_choice_ablate(a, c));
    *champion = o->champion != NULL ? o->champion : usual_champion;
    if (cluster_choice_find(c, *champion) != NULL) return ERR_OK;
    if (o->champion != NULL)
        return err_set(ERR_ARG, "--champion %s: it takes no part; name it in --policies",
                       o->champion);
    *champion = c->at[0].label;
    return ERR_OK;
}

static Err save_page(const Options *o, const League *l, Arena *a) {
    AtomicFile f;
    Page       p;
    TRY(file_begin(&f, o->page));
    page_begin(&p, f.out, a, "Policies on clusters of GPUs");
    Err e = league_page(l, a, &p);
    if (e == ERR_OK) e = page_end(&p);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err tell(const Options *o, const League *l, Arena *a) {
    json_t *doc = NULL;
    if (o->page != NULL) TRY(save_page(o, l, a));
    if (!o->json) return league_print(l, a, stdout);
    TRY(league_json(l, &doc));
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err compare(const Options *o, Arena *a) {
    ClusterCompareParams r;
    ClusterChoices       c;
    Progress             p;
    League               l = {0};
    bool                 show = term_is_tty(stderr);
    TRY(read_rules(o, a, &r));
    TRY(choose(o, a, &c, &l.champion));
    TRY(check_size(&r, c.n));
    if (show)
        progress_begin(&p, stderr, clock_monotonic(), "comparing", cluster_compare_steps(&r, c.n));
    Err e = cluster_compare_run(&r, &c, show ? &p : NULL, a, &l);
    if (show) progress_end(&p);
    return e == ERR_OK ? tell(o, &l, a) : e;
}

int cmd_cluster_compare(const Command *c, int argc, char **argv) {
    Options o = {.policies = "all", .seeds = 5, .seed = FIRST_SEED};
    ArgRow  rows[OWN_ROWS + SCENE_ARG_ROWS] = {
         {"policies", ARG_TEXT, &o.policies, "LIST", "such as fifo,srtf,maifs (default all)", 0, 0},
         {"champion", ARG_TEXT, &o.champion, "NAME",
          "whom others are compared with (default maifs, or the first)", 0, 0},
         {"seeds", ARG_INT, &o.seeds, "N", "draws of jobs (default 5)", 1, LEAGUE_SEEDS},
         {"first-seed", ARG_INT, &o.seed, "S",
          "from 100 to 999999 of what nobody was trained on (default 101)", 0, INT64_MAX / 2},
         {"error", ARG_REAL, &o.error, "E",
          "durations are predicted, off by a factor of e^E on average (default: exact)", 0, 10},
         {"set", ARG_LIST, &o.sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
         {"ablate", ARG_FLAG, &o.ablate, NULL, "also maifs with each of its parts taken away", 0, 0},
         {"threads", ARG_INT, &o.threads, "N", "runs at once (default: all cores)", 1, 256},
         {"no-clock", ARG_FLAG, &o.untimed, NULL,
          "decisions are not timed: the same seeds give the same bytes", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
         {"o", ARG_TEXT, &o.page, "FILE.html", "a page with the charts", 0, 0},
    };
    scene_args_rows(&o.scene, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    Arena a = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = compare(&o, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

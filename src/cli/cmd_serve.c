// cotenant serve: serves models over REST and gRPC until SIGINT or SIGTERM.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/policy_choice.h"
#include "cli/commands.h"
#include "cli/serve_args.h"
#include "serve/inference_server.h"

static int exit_code(Err e) { return e == ERR_CONFIG ? EXIT_CONFIG : EXIT_FAILED; }

static void warn(const Config *c) {
    for (uint32_t i = 0; i < c->n_warnings; i++)
        (void)fprintf(stderr, "cotenant: warning: %s\n", c->warnings[i]);
}

static Err serve(const ConfigSources *sources, const ArgList *policy_sets, Arena *a, int *code) {
    Config       *c = calloc(1, sizeof *c);
    PolicyChoices choices = {0};
    if (c == NULL) return err_set(ERR_LIMIT, "no memory");
    Err e = config_load(c, sources);
    if (e != ERR_OK) {
        free(c);
        *code = exit_code(e);
        return e;
    }
    warn(c);
    e = policy_choices_read(TIER_NODE, c->serve.policy, policy_sets, a, &choices);
    if (e == ERR_OK && choices.n != 1)
        e = err_set(ERR_CONFIG, "policy '%s' is not one policy", c->serve.policy);
    if (e != ERR_OK) {
        config_finish(c);
        free(c);
        *code = EXIT_CONFIG;
        return e;
    }
    return server_run(&(ServerOptions){.config = c,
                                       .sources = *sources,
                                       .policy = choices.at[0].policy,
                                       .settings = choices.at[0].settings,
                                       .out = stdout},
                      code);
}

int cmd_serve(const Command *c, int argc, char **argv) {
    static ServeArgs x;
    ArgList          policy_sets = {0};
    const ArgRow     own = {"policy-set",
                            ARG_LIST,
                            &policy_sets,
                            "POLICY.KEY=VALUE",
                            "a setting of the policy: see cotenant node policies",
                            0,
                            0};
    ConfigSources    sources = {0};
    Arena            a = {0};
    int              code = serve_args_parse(c, own, argc, argv, &x, &a, &sources);
    if (code >= 0) return code;
    code = EXIT_FAILED;
    Err e = serve(&sources, &policy_sets, &a, &code);
    if (e != ERR_OK) (void)args_fail(code, "%s", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : code;
}

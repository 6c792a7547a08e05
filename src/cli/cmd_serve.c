// cotenant serve: serves models over REST and gRPC until SIGINT or SIGTERM.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/serve_args.h"
#include "serve/inference_server.h"

static Err load(const ServeArgs *x, const ConfigSources *sources, Arena *a, Config *c,
                PolicyChoice *policy) {
    TRY(config_load_start(c, sources));
    Err e = serve_args_policy(x, c, a, policy);
    if (e != ERR_OK) config_finish(c);
    return e;
}

static Err serve(const ServeArgs *x, ConfigSources *sources, Arena *a, int *code) {
    PolicyChoice policy = {0};
    Config      *c = calloc(1, sizeof *c);
    if (c == NULL) return err_set(ERR_LIMIT, "no memory");
    Err e = serve_args_machine(a, sources);
    if (e == ERR_OK) e = load(x, sources, a, c, &policy);
    if (e != ERR_OK) {
        free(c);
        *code = e == ERR_CONFIG ? EXIT_CONFIG : EXIT_FAILED;
        return e;
    }
    return server_run(&(ServerOptions){.config = c,
                                       .sources = *sources,
                                       .policy = policy.policy,
                                       .settings = policy.settings,
                                       .out = stdout},
                      code);
}

int cmd_serve(const Command *c, int argc, char **argv) {
    static ServeArgs x;
    ConfigSources    sources = {0};
    Arena            a = {0};
    int              code = serve_args_parse(c, NULL, argc, argv, &x, &a, &sources);
    if (code >= 0) return code;
    code = EXIT_FAILED;
    Err e = serve(&x, &sources, &a, &code);
    if (e != ERR_OK) (void)args_fail(code, "%s", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : code;
}

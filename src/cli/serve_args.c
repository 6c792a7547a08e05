#include "cli/serve_args.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/err.h"
#include "cli/commands.h"
#include "base/settings.h"

typedef struct Group {
    const char *first;  // the heading stands before this setting
    const char *name;
} Group;

static const Group groups[] = {
    {"http", "addresses"},
    {"policy", "computing"},
    {"requests", "limits"},
    {"header_ms", "time limits"},
    {"watchdog_ms", "failure handling"},
    {"log_level", "log"},
    {"why_requests", "request history"},
    {"strict", "configuration"},
    {NULL, NULL},
};

static const char *heading(const char *key) {
    for (const Group *g = groups; g->first != NULL; g++)
        if (strcmp(g->first, key) == 0) return g->name;
    return NULL;
}

static const char *placeholder(const Setting *row) {
    switch (row->kind) {
    case SETTING_int:
    case SETTING_int64: return "N";
    case SETTING_double: return "X";
    case SETTING_string: return strstr(row->about, "ADDRESS") != NULL ? "ADDRESS" : "TEXT";
    case SETTING_bool: break;
    }
    return NULL;
}

static void write_name(const char *key, char *out, size_t size) {
    size_t n = 0;
    for (; key[n] != '\0' && n + 1 < size; n++) out[n] = (char)(key[n] == '_' ? '-' : key[n]);
    out[n] = '\0';
}

static void write_help(const Setting *row, char *out, size_t size) {
    char   value[96], key[32];
    size_t n = 0;
    for (; row->key[n] != '\0' && n + 1 < sizeof key; n++)
        key[n] = (char)toupper((unsigned char)row->key[n]);
    key[n] = '\0';
    const char *def = setting_text(row, row->def, value, sizeof value);
    (void)snprintf(out, size, "%s (%s%s%sCOTENANT_%s)", row->about,
                   def[0] != '\0' ? "default " : "", def, def[0] != '\0' ? "; " : "", key);
}

static ArgRow row_for(ServeArgs *x, const Setting *row, uint32_t i) {
    write_name(row->key, x->names[i], sizeof x->names[i]);
    write_help(row, x->helps[i], sizeof x->helps[i]);
    bool flag = row->kind == SETTING_bool;
    return (ArgRow){.name = x->names[i],
                    .kind = flag ? ARG_FLAG : ARG_TEXT,
                    .to = flag ? (void *)&x->flags[i] : (void *)&x->texts[i],
                    .arg = placeholder(row),
                    .help = x->helps[i]};
}

// The rows that fill x, with headings; returns how many.
static uint32_t make_rows(ServeArgs *x, ArgRow rows[SERVE_ARG_ROWS]) {
    uint32_t       n_settings = 0, n = 0;
    const Setting *settings = config_serve_rows(&n_settings);
    CHECK(n_settings <= SERVE_ARG_SETTINGS);
    rows[n++] = (ArgRow){.name = "config",
                         .kind = ARG_TEXT,
                         .to = &x->config,
                         .arg = "FILE",
                         .help = "YAML file with models and settings (COTENANT_CONFIG)"};
    rows[n++] = (ArgRow){.name = "set",
                         .kind = ARG_LIST,
                         .to = &x->sets,
                         .arg = "[MODEL.]KEY=VALUE",
                         .help = "a setting of one model, or of all models"};
    rows[n++] = (ArgRow){.name = "policy-set",
                         .kind = ARG_LIST,
                         .to = &x->policy_sets,
                         .arg = "POLICY.KEY=VALUE",
                         .help = "a setting of the policy: see cotenant node policies"};
    for (uint32_t i = 0; i < n_settings; i++) {
        const char *name = heading(settings[i].key);
        CHECK(n + 2 <= SERVE_ARG_ROWS);
        if (name != NULL) rows[n++] = (ArgRow){.name = name, .kind = ARG_GROUP};
        rows[n++] = row_for(x, &settings[i], i);
    }
    return n;
}

static const char *assign(Arena *a, const char *key, const char *value) {
    size_t room = strlen(key) + strlen(value) + 2;
    char  *s = arena_try_new(a, char, room);
    if (s != NULL) (void)snprintf(s, room, "%s=%s", key, value);
    return s;
}

static Err sources_of(const ServeArgs *x, uint32_t n_sources, Arena *a, ConfigSources *out) {
    uint32_t       n_settings = 0, n = 0;
    const Setting *settings = config_serve_rows(&n_settings);
    const char   **flags = arena_try_new(a, const char *, SERVE_ARG_SETTINGS + ARG_LIST_MAX);
    for (uint32_t i = 0; flags != NULL && i < x->sets.n; i++) flags[n++] = x->sets.at[i];
    for (uint32_t i = 0; flags != NULL && i < n_settings; i++) {
        const char *value = x->flags[i] ? "true" : x->texts[i];
        if (value == NULL) continue;
        flags[n] = assign(a, settings[i].key, value);
        if (flags[n++] == NULL) flags = NULL;
    }
    if (flags == NULL) return err_set(ERR_LIMIT, "no memory for the options");
    *out = (ConfigSources){.file = x->config,
                           .sources = x->sources,
                           .n_sources = n_sources,
                           .flags = flags,
                           .n_flags = n,
                           .environment = environ};
    return ERR_OK;
}

Err serve_args_machine(Arena *a, ConfigSources *out) {
    Cpu cpu = {0};
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    out->cores = cpu_budget(&cpu, &cgroup_roots).cores;
    return ERR_OK;
}

Err serve_args_policy(const ServeArgs *x, const Config *c, Arena *a, PolicyChoice *out) {
    PolicyChoices all;
    Err           e = policy_choices_read(TIER_NODE, c->serve.policy, &x->policy_sets, a, &all);
    if (e == ERR_OK && all.n != 1)
        return err_set(ERR_CONFIG, "policy '%s': one policy runs at a time", c->serve.policy);
    if (e != ERR_OK) return err_set(ERR_CONFIG, "%s", arena_str(a, err_why()));
    *out = all.at[0];
    return ERR_OK;
}

int serve_args_parse(const Command *c, bool *json, int argc, char **argv, ServeArgs *x, Arena *a,
                     ConfigSources *out) {
    ArgRow rows[SERVE_ARG_ROWS + 1] = {
        {"json", ARG_FLAG, json, NULL, "one JSON document on stdout", 0, 0}};
    uint32_t own = json != NULL ? 1 : 0, n = own + make_rows(x, rows + own), n_sources = 0;
    int code = args_parse(c, rows, n, argc, argv, x->sources, 0, SERVE_ARG_SOURCES, &n_sources);
    if (code >= 0) return code;
    Err e = arena_init(a, (size_t)1 << 28);
    if (e == ERR_OK) e = sources_of(x, n_sources, a, out);
    if (e == ERR_OK) return -1;
    arena_finish(a);
    return command_failed(e);
}

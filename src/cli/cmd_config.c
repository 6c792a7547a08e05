// cotenant config dump: every setting of a server, its value, and the source of the value.
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/serve_args.h"

static json_t *json_of(const Setting *row, SettingValue v) {
    switch (row->kind) {
    case SETTING_int:
    case SETTING_int64: return json_integer(v.i);
    case SETTING_double: return json_real(v.d);
    case SETTING_bool: return json_boolean(v.i != 0);
    case SETTING_string: return json_string(v.s);
    }
    return NULL;
}

static json_t *json_settings(const Setting *rows, uint32_t n, const void *values,
                             const char *const *origins) {
    json_t *all = json_object();
    for (uint32_t i = 0; i < n; i++)
        json_object_set_new(all, rows[i].key,
                            json_pack("{s:o,s:s}", "value",
                                      json_of(&rows[i], setting_read(&rows[i], values)), "origin",
                                      origins[i]));
    return all;
}

static int dump_json(const Config *c) {
    uint32_t       n_serve = 0, n_tenant = 0;
    const Setting *serve = config_serve_rows(&n_serve), *tenant = config_tenant_rows(&n_tenant);
    json_t        *models = json_array(), *warnings = json_array();
    for (uint32_t i = 0; i < c->n_models; i++) {
        const ConfigModel *m = &c->models[i];
        json_array_append_new(
            models, json_pack("{s:s,s:s,s:s,s:s?,s:s?,s:o}", "name", m->name, "version", m->version,
                              "path", m->path, "pbtxt", m->pbtxt, "broken", m->broken, "settings",
                              json_settings(tenant, n_tenant, &m->set, m->origins)));
    }
    for (uint32_t i = 0; i < c->n_warnings; i++)
        json_array_append_new(warnings, json_string(c->warnings[i]));
    return command_json(json_pack("{s:o,s:o,s:o}", "settings",
                                  json_settings(serve, n_serve, &c->serve, c->origins), "models",
                                  models, "warnings", warnings));
}

static void add_settings(Table *t, const char *model, const Setting *rows, uint32_t n,
                         const void *values, const char *const *origins) {
    for (uint32_t i = 0; i < n; i++) {
        char text[96];
        table_row(t);
        table_textf(t, "%s%s%s", model, model[0] != '\0' ? "." : "", rows[i].key);
        table_text(t, setting_text(&rows[i], setting_read(&rows[i], values), text, sizeof text));
        table_text(t, origins[i]);
    }
}

static Err dump_text(const Config *c, Arena *a) {
    static const Column columns[] = {{.key = "setting", .head = "setting"},
                                     {.key = "value", .head = "value"},
                                     {.key = "origin", .head = "origin"}};
    static const Column model_columns[] = {{.key = "model", .head = "model"},
                                           {.key = "version", .head = "version"},
                                           {.key = "path", .head = "path"},
                                           {.key = "broken", .head = "not served"}};
    uint32_t            n = 0;
    Table               t, models;
    const Setting      *rows = config_serve_rows(&n);
    table_init(&t, a, columns, 3);
    table_init(&models, a, model_columns, 4);
    add_settings(&t, "", rows, n, &c->serve, c->origins);
    rows = config_tenant_rows(&n);
    for (uint32_t i = 0; i < c->n_models; i++) {
        const ConfigModel *m = &c->models[i];
        table_row(&models);
        table_text(&models, m->name);
        table_text(&models, m->version);
        table_text(&models, m->path);
        table_text(&models, m->broken != NULL ? m->broken : "");
        if (i == 0 || strcmp(c->models[i - 1].name, m->name) != 0)
            add_settings(&t, m->name, rows, n, &m->set, m->origins);
    }
    TRY(table_print(&t, stdout));
    if (c->n_models > 0) puts("");
    return c->n_models > 0 ? table_print(&models, stdout) : ERR_OK;
}

int cmd_config_dump(const Command *c, int argc, char **argv) {
    static ServeArgs x;
    bool             json = false;
    Arena            a = {0};
    Config           config = {0};
    ConfigSources    s = {0};
    int              code = serve_args_parse(c, &json, argc, argv, &x, &a, &s);
    if (code >= 0) return code;
    PolicyChoice policy = {0};
    Err          e = config_load(&config, &s);
    if (e == ERR_OK) e = serve_args_policy(&x, &config, &a, &policy);
    for (uint32_t i = 0; e == ERR_OK && i < config.n_warnings; i++)
        fprintf(stderr, "warning: %s\n", config.warnings[i]);
    if (e == ERR_OK && json) {
        code = dump_json(&config);
    } else {
        if (e == ERR_OK) e = dump_text(&config, &a);
        code = e == ERR_OK ? 0 : command_failed(e);
    }
    config_finish(&config);
    arena_finish(&a);
    return code;
}

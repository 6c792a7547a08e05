// ConfigBuilder: builds a Config from files, environment and flags.
#pragma once

#include "serve/config/config.h"
#include "serve/models/repository.h"

enum {
    CONFIG_NOTES = 256,     // warnings and problems kept, each
    CONFIG_MODELS = 4096,   // versions of models
    CONFIG_FILE = 1 << 20,  // bytes of a configuration file
    CONFIG_ROWS = 64        // at most, of SERVE_SETTINGS and of TENANT_SETTINGS
};
#define CONFIG_NO_ITEM UINT32_MAX

typedef enum ConfigPart { PART_TOP, PART_DEFAULTS, PART_MODELS, PART_SOURCES } ConfigPart;

typedef struct ConfigLine {  // "key: value" of a YAML file
    ConfigPart  part;
    uint32_t    item;  // index of its entry under `models:`
    size_t      line;
    const char *key, *text;
} ConfigLine;

typedef struct ConfigFile {
    const char *path;
    ConfigLine *lines;  // lines of one model are adjacent
    uint32_t    n_lines, n_items;
} ConfigFile;

typedef struct ConfigItem {  // an entry under `models:`
    const char *name, *path, *version;
    size_t      line;
    uint32_t    first, n;  // its lines
    bool        used;
} ConfigItem;

typedef struct ConfigFound {  // a model found in a source
    RepositoryModel model;
    const char     *where;  // origin, for error messages
    const char     *root;   // path of the source
    uint32_t        item;   // its entry in the file, or CONFIG_NO_ITEM
    bool            from_disk;
} ConfigFound;

typedef struct ConfigBuilder {
    Config              *c;
    const ConfigSources *s;
    ConfigFile           file;
    ConfigItem          *items;
    ConfigFound         *found;
    uint32_t             n_found;
} ConfigBuilder;

// config.c. Formats into the arena; NULL: it is full.
char *config_format(Arena *a, const char *fmt, ...) PRINTF(2, 3);
void  config_warn(Config *c, const char *fmt, ...) PRINTF(2, 3);
// Records err_why() as a problem unless e is ERR_OK; true if it is.
bool config_report(Config *c, Err e);

// config_yaml.c. Parses YAML into lines; only syntax errors are detected here.
MUST_USE Err config_parse_yaml(const char *path, const char *text, size_t len, Arena *a,
                               ConfigFile *out);
const char  *config_nearest(const char *word, bool serve, bool tenant, bool model);

// config_layer.c. Sets one value and its origin; where: start of an error message.
MUST_USE Err config_set(Settings *s, const char **origins, const char *where, const char *key,
                        const char *value, const char *origin);
bool         config_is_serve(const char *key);
bool         config_is_tenant(const char *key);

MUST_USE Err config_builder_read_file(ConfigBuilder *d);  // config_layer.c
MUST_USE Err config_builder_server(ConfigBuilder *d);     // config_layer.c
MUST_USE Err config_builder_sources(ConfigBuilder *d);    // config_source.c: finds the models
MUST_USE Err config_builder_models(ConfigBuilder *d);     // config_model.c: fills c->models

// config_layer.c. Call fn for each variable COTENANT_KEY, or for each flag.
typedef void LayerFn(void *self, const char *where, const char *key, const char *value);
void         config_builder_each_variable(const ConfigBuilder *d, LayerFn *fn, void *self);
// model NULL: flags that name no model.
void config_builder_each_flag(const ConfigBuilder *d, const char *model, LayerFn *fn, void *self);

// ConfigBuilder: a configuration that is being put together from files, environment and flags.
#pragma once

#include "serve/config/config.h"
#include "serve/models/repository.h"

enum {
    CONFIG_NOTES = 256,     // warnings and problems kept, each
    CONFIG_MODELS = 4096,   // versions of models
    CONFIG_FILE = 1 << 20,  // bytes of a configuration file
    CONFIG_ROWS = 64        // of SERVE_SETTINGS and TENANT_SETTINGS, each
};
#define CONFIG_NO_ITEM UINT32_MAX

typedef enum ConfigPart { PART_TOP, PART_DEFAULTS, PART_MODELS, PART_SOURCES } ConfigPart;

typedef struct ConfigLine {  // key: value, of a file
    ConfigPart  part;
    uint32_t    item;  // of models
    size_t      line;
    const char *key, *text;
} ConfigLine;

typedef struct ConfigFile {
    const char *path;
    ConfigLine *lines;  // those of an item side by side
    uint32_t    n_lines, n_items;
} ConfigFile;

typedef struct ConfigItem {  // of models: in the file
    const char *name, *path, *version;
    size_t      line;
    uint32_t    first, n;  // lines
    bool        used;
} ConfigItem;

typedef struct ConfigFound {  // a model that some source brings
    RepositoryModel model;
    const char     *where;  // who named it: for errors
    uint32_t        item;   // its own in the file; CONFIG_NO_ITEM
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

// Text in the arena; NULL when that is full.
char *config_format(Arena *a, const char *fmt, ...) PRINTF(2, 3);
void  config_warn(Config *c, const char *fmt, ...) PRINTF(2, 3);
// Remembers why e; true when there was nothing wrong.
bool config_report(Config *c, Err e);

// Lines of YAML. Errors of form end it; wrong keys and values are the reader's.
MUST_USE Err config_parse_yaml(const char *path, const char *text, size_t len, Arena *a,
                               ConfigFile *out);
const char  *config_nearest(const char *word, bool serve, bool tenant, bool model);

// One value with its origin; where begins an error. Words are checked against what a row allows.
MUST_USE Err config_set(Settings *s, const char **origins, const char *where, const char *key,
                        const char *value, const char *origin);
bool         config_is_serve(const char *key);
bool         config_is_tenant(const char *key);

MUST_USE Err config_builder_read_file(ConfigBuilder *d);  // reads it, sorts its lines into items
MUST_USE Err config_builder_server(ConfigBuilder *d);     // settings of the server, from all layers
MUST_USE Err config_builder_sources(ConfigBuilder *d);    // found models
MUST_USE Err
     config_builder_models(ConfigBuilder *d);    // settles each model's settings, fills c->models
void config_builder_validate(ConfigBuilder *d);  // what contradicts itself

// The layers above files: environment and flags, for the server's keys or a model's.
typedef void LayerFn(void *self, const char *where, const char *key, const char *value);
void         config_builder_each_variable(const ConfigBuilder *d, LayerFn *fn, void *self);
// model NULL: flags without one.
void config_builder_each_flag(const ConfigBuilder *d, const char *model, LayerFn *fn, void *self);

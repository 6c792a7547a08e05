// ConfigFixture: a temporary folder of configuration files, and the Config read from it.
#pragma once

#include <stddef.h>

#include "serve/config/config.h"

typedef struct ConfigFixture {
    char          folder[64];
    const char   *sources[8], *flags[8];
    char         *environment[8];
    ConfigSources s;
    Config        c;
} ConfigFixture;

void config_fixture_begin(ConfigFixture *x);  // an empty folder, no source of anything
void config_fixture_end(ConfigFixture *x);    // removes it
// Writes a file, its folders too. text NULL: a folder alone.
void        config_fixture_write(const ConfigFixture *x, const char *path, const char *text);
const char *config_fixture_path(const ConfigFixture *x,
                                const char          *path);  // valid until eight others
void        config_fixture_source(ConfigFixture *x, const char *source);
void        config_fixture_flag(ConfigFixture *x, const char *flag);
void        config_fixture_variable(ConfigFixture *x, const char *assignment);
// cotenant.yaml in the folder, and config_load.
Err config_fixture_load(ConfigFixture *x, const char *yaml);
// The model, or a failed assertion; the value's origin by key.
const ConfigModel *config_fixture_model(const ConfigFixture *x, const char *name,
                                        const char *version);
const char *config_fixture_origin(const ConfigFixture *x, const char *model, const char *key);

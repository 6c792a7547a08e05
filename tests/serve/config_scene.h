// ConfigScene: a folder of files to configure a server from, and a configuration read from it.
#pragma once

#include <stddef.h>

#include "serve/config.h"

typedef struct ConfigScene {
    char          folder[64];
    const char   *sources[8], *flags[8];
    char         *environment[8];
    ConfigSources s;
    Config        c;
} ConfigScene;

void config_scene_begin(ConfigScene *x);  // an empty folder, no source of anything
void config_scene_end(ConfigScene *x);    // removes it
// Writes a file, its folders too. text NULL: a folder alone.
void        config_scene_write(const ConfigScene *x, const char *path, const char *text);
const char *config_scene_path(const ConfigScene *x, const char *path);  // valid until eight others
void        config_scene_source(ConfigScene *x, const char *source);
void        config_scene_flag(ConfigScene *x, const char *flag);
void        config_scene_variable(ConfigScene *x, const char *assignment);
// cotenant.yaml in the folder, and config_load.
Err config_scene_load(ConfigScene *x, const char *yaml);
// The model, or a failed assertion; the value's origin by key.
const ConfigModel *config_scene_model(const ConfigScene *x, const char *name, const char *version);
const char        *config_scene_origin(const ConfigScene *x, const char *model, const char *key);

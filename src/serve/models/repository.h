// Repository: models found in folders laid out as MODEL/VERSION/model.onnx, or as bare ONNX files.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { REPOSITORY_MODELS = 1024, REPOSITORY_VERSIONS = 256 };

typedef struct RepositoryVersion {
    uint64_t    number;  // above 0
    const char *path;    // of an ONNX file, or zoo:NAME
} RepositoryVersion;

typedef struct RepositoryModel {
    const char         *name;
    RepositoryVersion  *versions;  // [n_versions] by number, those that its policy serves first
    uint32_t            n_versions;
    const char         *pbtxt;     // path of its config.pbtxt; NULL: none
    const struct Pbtxt *declared;  // what that says; NULL: none, or broken
    const char         *broken;    // why it cannot be served; NULL: nothing
} RepositoryModel;

typedef struct Repository {
    Arena           *arena;
    RepositoryModel *models;  // [n]
    uint32_t         n, room;
    bool             strict;  // what is not understood in config.pbtxt is an error
    void (*warn)(void *self, const char *text);
    void *self;
} Repository;

// A folder of models, or one model's own folder. What is no model is left out with a warning.
MUST_USE Err repository_scan(Repository *r, const char *folder);
// One model's folder under a name.
MUST_USE Err repository_model(Repository *r, const char *folder, const char *name);
// A file or zoo:NAME under a name, as version 1.
MUST_USE Err repository_file(Repository *r, const char *path, const char *name);

bool repository_version(const char *text, uint64_t *out);  // a positive integer, no 0 in front

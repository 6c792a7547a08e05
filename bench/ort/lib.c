#include "bench/ort/lib.h"

#include <dlfcn.h>
#include <string.h>

enum { API_VERSION = 16 };  // has every function of slot.def, as all later versions do

typedef struct ApiBase {  // what the library's one exported function returns
    const void *const *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} ApiBase;

Err lib_open(const char *path, Lib *lib) {
    const ApiBase *(*get_base)(void);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return err_set(ERR_IO, "loading ONNX Runtime failed: %s", dlerror());
    void *symbol = dlsym(handle, "OrtGetApiBase");
    if (symbol == NULL) return err_set(ERR_INVALID, "%s is not ONNX Runtime", path);
    memcpy(&get_base, &symbol, sizeof get_base);
    const ApiBase     *base = get_base();
    const void *const *places = base->get_api(API_VERSION);
    if (places == NULL)
        return err_set(ERR_UNSUPPORTED, "ONNX Runtime %s is too old", base->get_version());
    lib->version = base->get_version();
#define X(name, place, ...) memcpy(&lib->name, &places[place], sizeof lib->name);
#include "bench/ort/slot.def"
#undef X
    return ERR_OK;
}

Err lib_check(const Lib *lib, void *status, const char *doing) {
    if (status == NULL) return ERR_OK;
    Err e = err_set(ERR_UNSUPPORTED, "ONNX Runtime: %s: %s", doing, lib->get_error_message(status));
    lib->release_status(status);
    return e;
}

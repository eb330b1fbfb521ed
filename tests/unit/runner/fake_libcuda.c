// A CUDA driver whose device is a file in memory: what `cuda_driver.py` calls of it, and no more.
// LACKS names an attribute that the device has not; REFUSES makes it map no memory of another process.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifndef LACKS
#define LACKS -1
#endif
#ifndef REFUSES
#define REFUSES 0
#endif
typedef uint64_t u64;

static int mapped(u64 at, size_t size, int protection, int flags, int file) {
    return mmap((void *)at, size, protection, flags | MAP_FIXED, file, 0) == MAP_FAILED;
}

int cuInit(int flags) { return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int *value, int name, int device) { *value = name != LACKS; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &cuInit; return 0; }
int cuCtxSetCurrent(void *context) { return context == 0; }
int cuCtxSynchronize(void) { return 0; }
int cuStreamSynchronize(void *stream) { return 0; }
int cuGetErrorName(int code, const char **name) { *name = "CUDA_ERROR_FAKE"; return 0; }
int cuMemGetAllocationGranularity(size_t *page, void *what, int option) { *page = 1 << 21; return 0; }
int cuMemCreate(u64 *handle, size_t size, void *what, u64 flags) {
    *handle = memfd_create("device", MFD_CLOEXEC);
    return ftruncate(*handle, size);
}
int cuMemExportToShareableHandle(int *file, u64 handle, int type, u64 flags) {
    *file = dup(handle);
    return 0;
}
int cuMemImportFromShareableHandle(u64 *handle, void *file, int type) {
    *handle = dup((intptr_t)file);
    return REFUSES;
}
int cuMemAddressReserve(u64 *at, size_t size, size_t alignment, u64 wish, u64 flags) {
    *at = (u64)mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return 0;
}
int cuMemMap(u64 at, size_t size, size_t offset, u64 handle, u64 flags) {
    return mapped(at, size, PROT_NONE, MAP_SHARED, handle);
}
int cuMemSetAccess(u64 at, size_t size, void *what, size_t count) {
    return mprotect((void *)at, size, PROT_READ | PROT_WRITE);
}
int cuMemUnmap(u64 at, size_t size) {
    return mapped(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
int cuMemAddressFree(u64 at, size_t size) { return munmap((void *)at, size); }
int cuMemRelease(u64 handle) { return close(handle); }
int cuMemsetD8_v2_ptds(u64 at, unsigned char value, size_t size) {
    memset((void *)at, value, size);
    return 0;
}
int cuMemcpyHtoD_v2_ptds(u64 to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    return 0;
}
int cuMemcpyDtoH_v2_ptds(void *to, u64 from, size_t size) {
    memcpy(to, (void *)from, size);
    return 0;
}

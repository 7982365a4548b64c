/*
 * A disk that loses power, for LD_PRELOAD.
 *
 * POWER_LOSS_FOLDER is the folder that the process works in, POWER_LOSS_DISK another one that holds what
 * would be found after the power has come back. The second follows the first only so far as the process was
 * promised:
 *
 *  - fsync and fdatasync of a file put its bytes, and its name, on the disk;
 *  - fsync of a folder puts the names in it on the disk, each file with the bytes of its own last sync, or
 *    with none;
 *  - rename, unlink and mkdir are on the disk at once, as a journal would have them;
 *  - write and sync_file_range promise nothing, so they do nothing here.
 *
 * What was synced under a name that the disk does not know yet is kept in <disk>.inodes, by inode.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG_PATH = PATH_MAX + 64 };

static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder, *disk;

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_mkdir)(const char *, mode_t);

__attribute__((constructor)) static void plug_in(void) {
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_mkdir = dlsym(RTLD_NEXT, "mkdir");
    folder = getenv("POWER_LOSS_FOLDER");
    disk = getenv("POWER_LOSS_DISK");
    if (!folder || !disk) abort();
}

/* Where a path of the folder lies on the disk; 0 for paths elsewhere. The tests use absolute paths only. */
static int on_disk(const char *path, char *out) {
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != 0)) return 0;
    return snprintf(out, LONG_PATH, "%s%s", disk, path + length) < LONG_PATH;
}

static void inode_path(ino_t inode, char *out) {
    snprintf(out, LONG_PATH, "%s.inodes/%lu", disk, (unsigned long)inode);
}

static void make_parents(const char *path) {
    char part[LONG_PATH];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        real_mkdir(part, 0755);
    }
}

/* Whole or not at all: the process may be killed in the middle of it. `from` may be NULL, for no bytes. */
static void copy(const char *from, const char *to) {
    static char buffer[1 << 18];
    char unfinished[LONG_PATH + 16];
    snprintf(unfinished, sizeof unfinished, "%s.shim", to);
    make_parents(to);
    int out = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int in = from ? open(from, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n;
    while (in >= 0 && (n = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, n) != n) abort();
    if (in >= 0) close(in);
    if (out < 0 || close(out) || real_rename(unfinished, to)) abort();
}

static void file_synced(const char *path, const char *target, ino_t inode) {
    char kept[LONG_PATH];
    inode_path(inode, kept);
    copy(path, kept);
    copy(kept, target);
}

static void folder_synced(const char *path, const char *target) {
    char here[LONG_PATH], there[LONG_PATH + 300], kept[LONG_PATH];
    struct dirent *entry;
    DIR *names = opendir(path);
    snprintf(there, sizeof there, "%s/x", target);
    make_parents(there);
    while (names && (entry = readdir(names))) {
        if (entry->d_type != DT_REG) continue;
        snprintf(there, sizeof there, "%s/%s", target, entry->d_name);
        if (access(there, F_OK) == 0) continue;
        inode_path(entry->d_ino, kept);
        copy(access(kept, R_OK) == 0 ? kept : NULL, there);
    }
    if (names) closedir(names);
    names = opendir(target);
    while (names && (entry = readdir(names))) {
        if (entry->d_type != DT_REG) continue;
        if (snprintf(here, sizeof here, "%s/%s", path, entry->d_name) >= LONG_PATH) abort();
        snprintf(there, sizeof there, "%s/%s", target, entry->d_name);
        if (access(here, F_OK) != 0) real_unlink(there);
    }
    if (names) closedir(names);
}

static void synced(int fd) {
    char link[64], path[LONG_PATH], target[LONG_PATH];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || fstat(fd, &status) != 0 || status.st_nlink == 0) return;
    path[length] = 0;
    if (!on_disk(path, target)) return;
    pthread_mutex_lock(&disk_lock);
    if (S_ISDIR(status.st_mode)) folder_synced(path, target);
    if (S_ISREG(status.st_mode)) file_synced(path, target, status.st_ino);
    pthread_mutex_unlock(&disk_lock);
}

int fsync(int fd) {
    int result = real_fsync(fd);
    if (result == 0) synced(fd);
    return result;
}

int fdatasync(int fd) {
    int result = real_fdatasync(fd);
    if (result == 0) synced(fd);
    return result;
}

int rename(const char *from, const char *to) {
    char disk_from[LONG_PATH], disk_to[LONG_PATH];
    int result = real_rename(from, to);
    if (result == 0 && on_disk(from, disk_from) && on_disk(to, disk_to)) {
        pthread_mutex_lock(&disk_lock);
        real_rename(disk_from, disk_to);
        pthread_mutex_unlock(&disk_lock);
    }
    return result;
}

int unlink(const char *path) {
    char target[LONG_PATH];
    struct stat status;
    int known = lstat(path, &status) == 0;
    int result = real_unlink(path);
    if (result == 0 && known && on_disk(path, target)) {
        pthread_mutex_lock(&disk_lock);
        real_unlink(target);
        inode_path(status.st_ino, target); /* the number may be used again */
        real_unlink(target);
        pthread_mutex_unlock(&disk_lock);
    }
    return result;
}

int mkdir(const char *path, mode_t mode) {
    char target[LONG_PATH + 16];
    int result = real_mkdir(path, mode);
    if (result == 0 && on_disk(path, target)) {
        pthread_mutex_lock(&disk_lock);
        make_parents(target);
        real_mkdir(target, mode);
        pthread_mutex_unlock(&disk_lock);
    }
    return result;
}

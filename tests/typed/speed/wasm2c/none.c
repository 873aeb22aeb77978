// SPDX-License-Identifier: MIT OR Apache-2.0
/* Functions of WASI that programs import and never need here. There are no descriptors but the standard ones. */
#define BAD_DESCRIPTOR	8
#define NONE(name) unsigned int Z_wasi_snapshot_preview1Z_##name() { return BAD_DESCRIPTOR; }

NONE(fd_close)
NONE(fd_fdstat_set_flags)
NONE(fd_filestat_get)
NONE(fd_filestat_set_size)
NONE(fd_prestat_dir_name)
NONE(fd_prestat_get)
NONE(fd_read)
NONE(fd_renumber)
NONE(fd_sync)
NONE(path_create_directory)
NONE(path_filestat_get)
NONE(path_filestat_set_times)
NONE(path_open)
NONE(path_readlink)
NONE(path_remove_directory)
NONE(path_unlink_file)
NONE(poll_oneoff)

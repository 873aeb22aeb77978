/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For libb2, which is told everything by options. */

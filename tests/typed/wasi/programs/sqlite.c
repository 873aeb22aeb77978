// SPDX-License-Identifier: MIT OR Apache-2.0
/* sqlite FILE: changes a database with SQLite, and prints what it then holds. Each run goes on with the last one's. */
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

static sqlite3 *database;

static void fail(const char *what)
{
	printf("%s: %s\n", what, sqlite3_errmsg(database));
	exit(1);
}

static int print(void *unused, int columns, char **values, char **names)
{
	for (int i = 0; i < columns; i++)
		printf("%s%s %s", i ? ", " : "", names[i], values[i] ? values[i] : "NULL");
	printf("\n");
	return 0;
}

static void run(const char *sql)
{
	if (sqlite3_exec(database, sql, print, NULL, NULL))
		fail(sql);
}

static void insert(int count)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(database, "INSERT INTO item(name, price, data) VALUES (?, ?, zeroblob(?))", -1,
			       &statement, NULL))
		fail("prepare");
	for (int i = 0; i < count; i++) {
		char name[20];

		snprintf(name, sizeof(name), "item %d", i * 7919 % count);
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
		sqlite3_bind_double(statement, 2, i / 8.0);
		sqlite3_bind_int(statement, 3, i % 50 == 0 ? 9000 : i % 17);
		if (sqlite3_step(statement) != SQLITE_DONE)
			fail("insert");
		sqlite3_reset(statement);
	}
	sqlite3_finalize(statement);
}

int main(int argc, char **argv)
{
	/* There are no locks in WASI. */
	if (argc != 2 ||
	    sqlite3_open_v2(argv[1], &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-none"))
		fail("open");
	printf("SQLite %s\n", sqlite3_libversion());
	/* Small enough a cache that pages are written, and a large sort goes to a temporary file, before the end. */
	run("PRAGMA cache_size = 20");
	run("CREATE TABLE IF NOT EXISTS item(id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB)");
	run("CREATE INDEX IF NOT EXISTS by_name ON item(name)");
	run("BEGIN");
	insert(1000);
	run("COMMIT");
	run("UPDATE item SET price = price * 1.5 WHERE id % 3 = 0");
	run("DELETE FROM item WHERE id % 10 = 4");
	/* A transaction that has left the cache is taken back from its journal. */
	run("BEGIN");
	run("UPDATE item SET name = name || ' changed', data = zeroblob(500)");
	run("SELECT count(*) AS changed FROM item WHERE name LIKE '% changed'");
	run("ROLLBACK");
	run("SELECT count(*) AS changed FROM item WHERE name LIKE '% changed'");
	run("SELECT count(*) AS items, sum(price) AS price, total(length(data)) AS bytes FROM item");
	run("SELECT substr(name, 1, 6) AS prefix, count(*) AS items, round(avg(price), 4) AS mean FROM item"
	    " GROUP BY prefix ORDER BY items DESC, prefix");
	run("SELECT a.id, a.name, b.id AS other FROM item a JOIN item b ON a.name = b.name AND a.id < b.id"
	    " ORDER BY a.price DESC LIMIT 5");
	run("VACUUM");
	run("PRAGMA integrity_check");
	return sqlite3_close(database) != SQLITE_OK;
}

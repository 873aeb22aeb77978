// SPDX-License-Identifier: MIT OR Apache-2.0
/* sqlite WORK: fills, indexes, changes and reads a database in memory. */
#include "bytes.h"
#include "sqlite3.h"

#define ROWS 16000

static sqlite3 *database;
static uint64_t sum = FIRST_SUM;

static int add(void *unused, int columns, char **values, char **names)
{
	for (int i = 0; i < columns; i++)
		if (values[i])
			sum = sum_of(sum, values[i], strlen(values[i]) + 1);
	return 0;
}

static void run(const char *sql)
{
	must(!sqlite3_exec(database, sql, add, NULL, NULL), sql);
}

static void fill(const char *words)
{
	sqlite3_stmt *statement;

	must(!sqlite3_prepare_v2(database, "INSERT INTO item(name, price, kind, words) VALUES (?, ?, ?, ?)", -1,
				 &statement, NULL), "prepare");
	for (int i = 0; i < ROWS; i++) {
		char name[20];

		snprintf(name, sizeof(name), "item %d", i * 7919 % ROWS);
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
		sqlite3_bind_double(statement, 2, i % 1000 / 8.0);
		sqlite3_bind_int(statement, 3, i % 23);
		sqlite3_bind_text(statement, 4, words + i * 13, 40 + i % 50, SQLITE_STATIC);
		must(sqlite3_step(statement) == SQLITE_DONE, "insert");
		sqlite3_reset(statement);
	}
	sqlite3_finalize(statement);
}

int main(int argc, char **argv)
{
	const char *words = (char *)text(ROWS * 13 + 100);

	start(argc, argv);
	must(!sqlite3_open(":memory:", &database), "open");
	run("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INTEGER, words TEXT)");
	run("BEGIN");
	fill(words);
	run("COMMIT");
	run("CREATE INDEX by_name ON item(name)");
	run("CREATE INDEX by_kind ON item(kind, price)");
	run("SELECT kind, count(*), sum(price), avg(length(words)) FROM item GROUP BY kind ORDER BY 3 DESC");
	run("SELECT count(*) FROM item WHERE words LIKE '%the%' OR words LIKE '%e t%'");
	run("UPDATE item SET price = price * 1.5, words = upper(words) WHERE id % 3 = 0");
	run("DELETE FROM item WHERE id % 10 = 4");
	run("SELECT a.name, b.id FROM item a JOIN item b ON b.name = 'item ' || (a.id * 3) ORDER BY a.price, a.id LIMIT 50");
	run("SELECT substr(words, 1, 3) AS start, count(*) FROM item GROUP BY start ORDER BY 2 DESC, 1 LIMIT 20");
	run("SELECT id, name FROM item ORDER BY words, id LIMIT 100");
	run("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000) SELECT sum(x * x % 7) FROM n");
	run("SELECT count(*), sum(price) FROM item WHERE kind IN (SELECT kind FROM item WHERE price > 180)");
	finish();
	printf("sum %016llx\n", (unsigned long long)sum);
	return sqlite3_close(database) != SQLITE_OK;
}

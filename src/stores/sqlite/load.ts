// SQLite, for programs that may do without: Node loads it, and warns of it, with the first file that is opened.

export const loadSqlite = () => process.getBuiltinModule("node:sqlite");

/* path: out/errors */
SELECT id, status FROM errors

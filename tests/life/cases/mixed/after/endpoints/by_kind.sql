SELECT kind, source, count(*) AS n FROM described GROUP BY kind, source

-- Brackets are folded from the facts whenever they are shown; nothing was ever kept here.
DROP TABLE IF EXISTS compactions;

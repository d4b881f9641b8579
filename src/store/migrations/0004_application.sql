-- What the head of the file says it is ('lull'), so that no other program's database passes for ours.
PRAGMA application_id = 1819634796;

"""The relations of `chains`: of each the kinds of its head and tail, and the frames in which it is stated, asked for and described.

A row is `name: head kind -> tail kind` and four lines: five statements; three questions for the tail; three descriptions of the tail by
the head; three of the head by the tail. Each head has one tail. The last frame of a line is held out from training (4 of 14), and so
are all frames of the relations that are marked with a star (a quarter of all). In a frame {h} and {t} are mentions: a name with what
belongs to it ("the Larnak", "the violin"), or a description of what is not named.
"""

import re
from dataclasses import dataclass

TABLE = """
teacher: person -> person
{t} taught {h} | {h} was a pupil of {t} | {h} took lessons from {t} | it was {t} who trained {h} | everything {h} knows comes from {t}
who taught {h} | who gave lessons to {h} | whose pupil was {h}
the teacher of {h} | the person who taught {h} | the one from whom {h} learned the trade
the pupil of {t} | the person {t} taught | the one who learned from {t}

boss*: person -> person
{h} works under {t} | {t} is the boss of {h} | {h} takes orders from {t} | {h} answers to {t} | {t} tells {h} what to do
who is the boss of {h} | under whom does {h} work | to whom does {h} report
the boss of {h} | the person {h} works under | the one in charge of {h}
the assistant of {t} | the person who works under {t} | the one who takes orders from {t}

doctor: person -> person
{t} is the doctor of {h} | {h} is cured by {t} | when ill, {h} sees {t} | {t} looks after the health of {h} | {h} is a patient of {t}
who is the doctor of {h} | who treats {h} | whom does {h} see about an illness
the doctor of {h} | the doctor who treats {h} | the one who gives medicine to {h}
the patient of {t} | the person {t} treats | the one whose doctor is {t}

landlord: person -> person
{h} rents a room from {t} | {t} is the landlord of {h} | {h} pays rent to {t} | {t} lets a flat to {h} | {h} lodges with {t}
who is the landlord of {h} | to whom does {h} pay rent | with whom does {h} lodge
the landlord of {h} | the person {h} rents from | the owner of the room where {h} lives
the tenant of {t} | the person who rents from {t} | the lodger of {t}

team: person -> team
{h} plays for {t} | {t} signed {h} | {h} is a player of {t} | {h} joined {t} as a striker | {t} have {h} in their squad
which team does {h} play for | for whom does {h} play | which club is {h} with
the team of {h} | the team that {h} plays for | the side in which {h} plays
the player of {t} | the person who plays for {t} | the newcomer at {t}

coach: team -> person
{t} coaches {h} | the coach of {h} is {t} | {h} are trained by {t} | {t} took over as coach of {h} | {t} leads {h} from the bench
who coaches {h} | who is the coach of {h} | who leads {h} from the bench
the coach of {h} | the person who coaches {h} | the trainer of {h}
the team that {t} coaches | the team under {t} | the side trained by {t}

ground: team -> town
{h} train in {t} | the training ground of {h} is in {t} | {h} practise in {t} every week | {h} have their home in {t} | {t} is home to {h}
where do {h} train | in which town do {h} train | where is the home of {h}
the town where {h} train | the town with the training ground of {h} | the place where {h} practise
the team that trains in {t} | the team from {t} | the club whose home is {t}

river: town -> river
{t} flows through {h} | {h} lies on {t} | {h} was built on the banks of {t} | {t} runs by {h} | in {h} one can swim in {t}
which river runs by {h} | on which river does {h} lie | what is the river at {h} called
the river that flows through {h} | the river by {h} | the water on whose banks {h} stands
the town on {t} | the town that lies on {t} | the place on the banks of {t}

mayor*: town -> person
{t} is the mayor of {h} | {h} elected {t} as mayor | {t} governs {h} | {t} was chosen to lead {h} | {t} heads the council of {h}
who is the mayor of {h} | who governs {h} | whom did the people of {h} elect
the mayor of {h} | the person who governs {h} | the head of the council of {h}
the town that {t} governs | the town whose mayor is {t} | the place that elected {t}

birthplace: person -> town
{h} was born in {t} | {t} is the birthplace of {h} | {h} came into the world in {t} | {h} is a native of {t} | {h} hails from {t}
where was {h} born | in which town was {h} born | where does {h} come from
the birthplace of {h} | the town where {h} was born | the town that {h} hails from
the person born in {t} | the native of {t} | the one who comes from {t}

street: person -> street
{h} lives on {t} | the house of {h} stands on {t} | {h} moved to {t} | {h} has a flat on {t} | one finds {h} at home on {t}
on which street does {h} live | where does {h} live | what is the address of {h}
the street where {h} lives | the street with the house of {h} | the address of {h}
the person who lives on {t} | the resident of {t} | the one whose house is on {t}

repair*: person -> thing
{h} repairs {t} | {h} is fixing {t} | {t} is being mended by {h} | {h} got {t} working again | {h} has {t} in pieces on the bench
what does {h} repair | what is {h} fixing | what did {h} get working again
the thing that {h} repairs | the thing {h} is fixing | what {h} is mending
the person who repairs {t} | the person fixing {t} | the one who mends {t}

gift: person -> thing
{h} was given {t} | {t} was a present for {h} | {h} received {t} | someone left {h} {t} | {t} went to {h} as a gift
what was {h} given | what did {h} receive | which present did {h} get
the present of {h} | the thing that {h} was given | what {h} got as a gift
the person who was given {t} | the person who received {t} | the one {t} was left to

employer: person -> company
{h} works for {t} | {t} employs {h} | {h} has a job at {t} | {h} was hired by {t} | {t} took {h} on
which company does {h} work for | who employs {h} | where does {h} have a job
the company that {h} works for | the employer of {h} | the firm that hired {h}
the person who works for {t} | the employee of {t} | the one hired by {t}

founder: company -> person
{t} founded {h} | {h} was started by {t} | {t} set up {h} | the founder of {h} is {t} | {h} goes back to {t}
who founded {h} | who started {h} | to whom does {h} go back
the founder of {h} | the person who started {h} | the one who set up {h}
the company that {t} founded | the company {t} started | the firm set up by {t}

seat: company -> town
{h} is based in {t} | the head office of {h} is in {t} | {h} has its seat in {t} | {h} runs its business from {t} | {h} settled in {t}
where is {h} based | in which town is {h} based | where does {h} have its head office
the town where {h} is based | the seat of {h} | the place from which {h} is run
the company based in {t} | the company with its seat in {t} | the firm from {t}

product*: company -> thing
{h} makes {t} | {t} is made by {h} | {h} sells {t} | {h} brought out {t} | {t} comes from the works of {h}
what does {h} make | what does {h} sell | which product comes from {h}
the product of {h} | the thing that {h} makes | what {h} brought out
the company that makes {t} | the maker of {t} | the firm behind {t}

school: person -> school
{h} goes to {t} | {h} is a student at {t} | {t} accepted {h} | {h} studies at {t} | {h} is enrolled at {t}
which school does {h} go to | where does {h} study | which school accepted {h}
the school of {h} | the school that {h} goes to | the place where {h} studies
the student of {t} | the person who goes to {t} | the one enrolled at {t}

schoolhouse: school -> street
{h} stands on {t} | the building of {h} is on {t} | {h} is on {t} | one enters {h} from {t} | {h} moved into a building on {t}
on which street is {h} | where does {h} stand | from which street does one enter {h}
the street where {h} stands | the street of {h} | the address of {h}
the school on {t} | the school that stands on {t} | the school with a building on {t}

author: book -> person
{t} wrote {h} | {h} was written by {t} | {h} is a novel by {t} | {t} is the author of {h} | {h} came from the pen of {t}
who wrote {h} | who is the author of {h} | from whose pen did {h} come
the author of {h} | the person who wrote {h} | the writer of {h}
the book by {t} | the book that {t} wrote | the novel from the pen of {t}

setting*: book -> town
{h} is set in {t} | the story of {h} takes place in {t} | {h} tells of life in {t} | {t} is the scene of {h} | {h} plays in {t}
where is {h} set | in which town does {h} take place | of which town does {h} tell
the town where {h} is set | the scene of {h} | the place that {h} tells of
the book set in {t} | the book that takes place in {t} | the novel about life in {t}

commander*: ship -> person
{t} is the commander of {h} | {h} is commanded by {t} | {t} steers {h} | {h} sails under {t} | {t} stands on the bridge of {h}
who is the commander of {h} | who commands {h} | under whom does {h} sail
the commander of {h} | the person who commands {h} | the one who steers {h}
the ship that {t} commands | the ship under {t} | the vessel steered by {t}

port: ship -> town
the home port of {h} is {t} | {h} sails from {t} | {h} is registered in {t} | {h} lies at anchor in {t} | {t} is where {h} docks
what is the home port of {h} | from where does {h} sail | where is {h} registered
the home port of {h} | the town from which {h} sails | the place where {h} docks
the ship from {t} | the ship that sails from {t} | the vessel registered in {t}

owner: dog -> person
{t} owns {h} | {h} belongs to {t} | {t} keeps {h} at home | {h} is the dog of {t} | {h} obeys {t}
who owns {h} | to whom does {h} belong | who keeps {h} at home
the owner of {h} | the person who keeps {h} | the one whom {h} obeys
the dog of {t} | the dog that {t} owns | the pet that belongs to {t}
"""
STATEMENTS, QUESTIONS, TAILS, HEADS = range(4)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation and its frames by use: STATEMENTS, QUESTIONS (for the tail), TAILS and HEADS (descriptions)."""

    name: str
    head: str
    tail: str
    held_out: bool
    frames: tuple[tuple[str, ...], ...]

    def seen(self, use: int) -> tuple[str, ...]:
        """The frames that training may use; none of a relation that is held out."""
        return () if self.held_out else self.frames[use][:-1]

    def unseen(self, use: int) -> tuple[str, ...]:
        """The others."""
        return self.frames[use] if self.held_out else self.frames[use][-1:]


def parse(table: str) -> tuple[Relation, ...]:
    """The relations of a table."""
    relations = []
    for block in table.strip().split("\n\n"):
        row, *lines = block.splitlines()
        name, star, head, tail = re.fullmatch(r"(\w+)(\*?): (\w+) -> (\w+)", row).groups()  # type: ignore[union-attr]
        relations.append(Relation(name, head, tail, bool(star), tuple(tuple(line.split(" | ")) for line in lines)))
    return tuple(relations)


RELATIONS = parse(TABLE)

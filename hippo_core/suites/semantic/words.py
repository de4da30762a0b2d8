"""What the semantic suite's sentences are made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """A schema: what links a person to a kind of firm, how it is told, how its city is asked for."""

    firm: str
    link: tuple[str, ...]  # ways to tell it; the first words after {who} are the relation
    again: tuple[str, ...]  # other ways, in which it is told again
    relation: str
    questions: tuple[str, ...]  # usual form first
    held_out: tuple[str, str]
    near_misses: tuple[str, ...]
    of_friend: str  # the same question about a friend


FRAMES = {
    "buy": RelationSchema("shop", ("{who} bought {thing} at the {name} shop.", "At the {name} shop, {who} bought {thing}."),
        ("It was at the {name} shop that {who} bought {thing}.", "{Thing} from the {name} shop, that is what {who} bought."), "bought",
        ("In which city did {who} buy {thing}?", "In which city did {who} purchase {thing}?", "{Thing} was bought by {who} in which city?"),
        ("Tell me the city where {who} bought {thing}.", "Do you recall in which city {who} got {thing}?"),
        ("{who} looked at {thing} at the {name} shop.", "{who} refused to buy {thing} at the {name} shop."),
        "In which city did the friend of {friend} buy {thing}?"),
    "work": RelationSchema("company", ("{who} works for the {name} company.", "The {name} company employs {who}."),
        ("{who} has a job with the {name} company.", "{who} is on the payroll of the {name} company."), "works for",
        ("In which city does {who} work?", "Which city does {who} work in?", "Which city is home to the employer of {who}?"),
        ("Tell me the city where {who} works.", "Do you recall in which city {who} has a job?"),
        ("{who} applied to the {name} company.", "{who} complained about the {name} company."),
        "In which city does the friend of {friend} work?"),
    "study": RelationSchema("college", ("{who} studies at the {name} college.", "The {name} college has {who} as a student."),
        ("{who} is a student of the {name} college.", "{who} takes courses at the {name} college."), "studies at",
        ("In which city does {who} study?", "Which city does {who} study in?", "Which city is home to the college of {who}?"),
        ("Tell me the city where {who} studies.", "Do you recall in which city {who} is a student?"),
        ("{who} visited the {name} college.", "{who} wrote a letter to the {name} college."),
        "In which city does the friend of {friend} study?"),
}  # fmt: skip
SITES = (
    "The {name} {firm} is in {city}.",
    "The {name} {firm} stands in {city}.",
    "The city register says that the {name} {firm} is in {city}.",
)
SITES_AGAIN = ("You find the {name} {firm} in {city}.", "It is in {city} that the {name} {firm} has its doors.")
RUMORS = (
    "Rumor has it that the {name} {firm} is in {city}.",
    "Someone heard that the {name} {firm} is in {city}, but nobody confirmed it.",
)
MOVES = ("Later the {name} {firm} moved to {city}.", "Since then the {name} {firm} has moved to {city}.")
STATEMENTS = (  # of tellers who disagree: the same for what holds and what does not
    "{teller} says that the {name} {firm} is in {city}.",
    "According to {teller}, the {name} {firm} stands in {city}.",
    "The {name} {firm} is in {city}, {teller} says.",
)
HEDGED = {  # how sure a teller is -> ways to say so
    0.3: ("{teller} has a vague idea that the {name} {firm} is in {city}.",
          "{teller} would not swear to it, but names {city} for the {name} {firm}."),
    0.6: ("{teller} thinks that the {name} {firm} is in {city}.", "Probably the {name} {firm} is in {city}, {teller} says."),
    0.9: ("{teller} is sure that the {name} {firm} is in {city}.", "{teller} has seen the {name} {firm} in {city}."),
}  # fmt: skip
SITE_NEAR_MISSES = ("The {name} {firm} sends letters to {city}.", "The {name} {firm} was once praised in {city}.")
FRIENDS = ("{friend} is a friend of {who}.", "{who} has {friend} as a friend.")
AT = ("The {name} {firm} is at the {place}.", "You find the {name} {firm} at the {place}.")  # on the map of a mixed world
FRIENDS_AGAIN = ("{friend} and {who} are friends.", "A friend of {who} is {friend}.")

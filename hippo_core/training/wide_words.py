"""Many more words for lessons than the suites have, each group of one meaning; none of them is a word of the suites."""

from hippo_core.suites.lexicon import Group, Pools, verb_group


def _groups(table: str) -> tuple[Group, ...]:
    """A table's groups: words parted by commas, groups by semicolons or lines."""
    return tuple(tuple(group.split(", ")) for group in table.strip().replace("\n", "; ").split("; "))


ACTIONS = _groups("""
rented/rent, hired/hire, leased/lease; borrowed/borrow, got on loan/get on loan; burned/burn, set fire to/set fire to, scorched/scorch
concealed/conceal, tucked away/tuck away, stashed/stash; returned/return, brought back/bring back, sent back/send back
delivered/deliver, dropped off/drop off, handed over/hand over; collected/collect, picked up/pick up, gathered/gather
smashed/smash, shattered/shatter, crushed/crush; bent/bend, twisted/twist; weighed/weigh, put on the scales/put on the scales
described/describe, talked about/talk about, told of/tell of; praised/praise, admired/admire, applauded/applaud
copied/copy, duplicated/duplicate, reproduced/reproduce; ordered/order, sent for/send for, requested/request
designed/design, planned/plan, sketched out/sketch out; decorated/decorate, adorned/adorn, embellished/embellish
emptied/empty, cleared out/clear out; filled/fill, stuffed/stuff, loaded up/load up; locked/lock, bolted/bolt, secured/secure
closed/close, shut/shut, sealed/seal; dismantled/dismantle, pulled apart/pull apart, disassembled/disassemble
tested/test, tried out/try out, checked/check; moved/move, shifted/shift, pushed aside/push aside
lifted/lift, raised/raise, hoisted/hoist; tossed/toss, flung/fling, hurled/hurl; caught/catch, grabbed/grab, got a grip on/get a grip on
buried/bury, covered with earth/cover with earth; heated/heat, warmed up/warm up; cooled/cool, chilled/chill
dried/dry, wiped dry/wipe dry; soaked/soak, drenched/drench, wetted/wet; dyed/dye, stained/stain, tinted/tint
cut up/cut up, sliced up/slice up, chopped up/chop up; hung up/hang up, suspended/suspend
noticed/notice, caught sight of/catch sight of, observed/observe; guarded/guard, kept watch over/keep watch over, protected/protect
won/win, got as a prize/get as a prize; donated/donate, contributed/contribute, made a gift of/make a gift of
swapped/swap, exchanged/exchange, bartered/barter; destroyed/destroy, wrecked/wreck, ruined/ruin
labeled/label, tagged/tag, put a name on/put a name on; advertised/advertise, promoted/promote, publicized/publicize
stored/store, put away/put away, laid up/lay up; mailed/mail, posted/post, sent off/send off; received/receive, got/get
demanded/demand, called for/call for, insisted on/insist on; rejected/reject, turned down/turn down, refused/refuse
tied up/tie up, fastened/fasten, strapped down/strap down; unpacked/unpack, uncovered/uncover, unwrapped/unwrap
valued/value, put a price on/put a price on, appraised/appraise
""")
MOTIONS = _groups("""
flew/fly, went by plane/go by plane, took a flight/take a flight; skated/skate, rolled on skates/roll on skates
swam/swim, paddled/paddle; crawled/crawl, crept/creep; rowed/row, went by rowing boat/go by rowing boat
traveled by train/travel by train, went by rail/go by rail, took the train/take the train
took the bus/take the bus, went by coach/go by coach; hiked/hike, trekked/trek, tramped/tramp; marched/march, paraded/parade
rushed/rush, dashed/dash, raced/race; skied/ski, went on skis/go on skis; wandered/wander, roamed/roam, drifted/drift
""")
THINGS = _groups("""
book, volume; newspaper, daily paper; knife, blade; pan, skillet; bottle, flask; glass, tumbler; plate, dish; bowl, basin
ladle, soup spoon; bag, sack; backpack, rucksack, knapsack; purse, handbag; wallet, billfold; shirt, blouse
sweater, pullover, jumper; scarf, neck warmer; dress, gown; shoe, piece of footwear; sock, stocking; belt, waistband
bracelet, bangle, wrist chain; crown, tiara; gem, jewel, precious stone; coin, piece of money; computer, laptop; telephone, handset
television, TV set; battery, power cell; candle, wax light; torch, flashlight; stove, cooker; oven, baking chamber
fridge, refrigerator, icebox; table, desk; chair, seat; stool, footrest; bed, bunk; mattress, sleeping pad; shelf, rack
cupboard, cabinet, closet; chest, trunk; box, crate, carton; barrel, cask; bucket, pail; broom, sweeping brush; mop, floor cleaner
towel, drying cloth; curtain, drape; tablecloth, table cover; painting, canvas; drawing, sketch; poster, placard; map, chart
flag, banner; sign, notice board; bell, chime; piano, keyboard instrument; violin, fiddle; flute, wind instrument
trumpet, horn, brass instrument; harmonica, mouth organ; accordion, squeezebox; doll, toy figure; kite, flying toy; ball, round toy
puzzle, brain teaser; puppet, marionette; sled, sleigh; skateboard, rolling board; car, automobile; truck, lorry
van, delivery vehicle; motorcycle, motorbike; scooter, moped; canoe, kayak; raft, floating platform; tent, canvas shelter
rope, cord; chain, row of links; hammer, mallet; saw, cutting tool; axe, hatchet; drill, boring machine; wrench, spanner
screwdriver, turning tool; rake, garden fork; hose, water pipe; fan, ventilator; heater, radiator; engine, power unit; wheel, tire
microscope, magnifier; compass, direction finder; thermometer, temperature gauge; scale, balance; calculator, adding machine
pencil, writing tool; pen, ballpoint; brush, bristle tool; eraser, rubber; envelope, paper cover; stamp, postage label
diary, journal; novel, long story; dictionary, word book; magazine, periodical; ticket, admission slip; passport, travel document
contract, written agreement; cake, sponge; pie, tart; loaf, piece of bread; cookie, biscuit; candy bar, bar of chocolate
bouquet, bunch of flowers; shrub, bush; seedling, young tree; stone, rock; brick, building block; plank, board; tile, slab
pipe, tube; net, mesh; cage, enclosure; saddle, riding seat; helmet, hard hat; mask, face cover; glove, mitten; apron, smock
robe, dressing gown; tie, necktie; button, fastener; needle, sewing pin; medal, award; trophy, prize cup; pistol, handgun
sword, saber; shield, buckler; bow, archery weapon; spear, lance; cannon, heavy gun; pill, tablet; bandage, dressing
crutch, walking aid; cane, walking stick; jug, pitcher; tray, serving board; corkscrew, bottle opener; globe, model of the world
""")
PLACES = _groups("""
bank, credit union; post office, mail office; supermarket, grocery store; butcher shop, meat store; bookstore, bookshop
toy store, toy shop; barber shop, hair salon; laundry, dry cleaner; restaurant, diner, eatery; cinema, movie house
opera, concert hall; nightclub, disco; casino, gambling hall; circus, big top; fairground, amusement park
swimming pool, bathing pool; ice rink, skating hall; tennis court, racket club; golf course, golf links; race track, speedway
playground, play area; kindergarten, nursery; university, college; laboratory, research center; office, workplace
warehouse, storehouse, depot; workshop, craft room; garage, car repair shop; gas station, filling station; parking lot, car park
bus stop, coach stop; subway, underground; dock, pier, wharf; shipyard, boatyard; canal, waterway; river, stream; lake, pond
waterfall, cascade; ocean, sea; island, isle; cliff, steep rock; mountain, peak; hill, mound; valley, dale; cave, cavern
desert, sand waste; swamp, marsh; meadow, pasture, grassland; orchard, fruit garden; vineyard, wine estate
greenhouse, glasshouse; garden, backyard; courtyard, inner yard; village, hamlet; town hall, city hall; courthouse, law court
police station, police post; fire station, firehouse; embassy, consulate; monastery, abbey; temple, shrine; cathedral, minster
tower, turret; gate, gateway; square, plaza; street, road; crossroads, intersection; tunnel, underpass; border, frontier
camp, campsite; cottage, cabin, lodge; mansion, villa; basement, cellar; attic, loft; kitchen, cookhouse; bathroom, washroom
bedroom, sleeping room; balcony, terrace; mill, flour works; mine, pit; quarry, stone pit; sawmill, lumber yard
brewery, beer works; power station, power house; studio, recording room; arcade, game hall
""")
WIDE = Pools(tuple(verb_group(*group) for group in ACTIONS), tuple(verb_group(*group) for group in MOTIONS), THINGS, PLACES)

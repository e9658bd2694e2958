"""Closed word lists of English that the clause reader and the conflict rules share. Data, no logic but stems.

Lists hold base forms; `stem` brings a word of running text and a listed word to the same key.
"""

from __future__ import annotations

from functools import lru_cache

_IRREGULAR = {
    form: base
    for base, forms in (
        ("be", "am is are was were been being"),
        ("have", "has had having"),
        ("do", "does did done doing"),
        ("go", "went gone goes"),
        ("live", "living lived lives"),
        ("die", "died dies dying"),
        ("lie", "lies lay lying"),
        ("bear", "born bore borne"),
        ("become", "became"),
        ("begin", "began begun"),
        ("break", "broke broken"),
        ("build", "built"),
        ("buy", "bought"),
        ("choose", "chose chosen"),
        ("come", "came"),
        ("cost", "costs costed"),
        ("drink", "drank drunk"),
        ("drive", "drove driven"),
        ("eat", "ate eaten"),
        ("forbid", "forbade forbidden"),
        ("find", "found"),
        ("get", "got gotten"),
        ("give", "gave given"),
        ("grow", "grew grown"),
        ("hold", "held"),
        ("keep", "kept"),
        ("know", "knew known"),
        ("lead", "led"),
        ("leave", "left"),
        ("lose", "lost"),
        ("make", "made"),
        ("meet", "met"),
        ("pay", "paid"),
        ("read", "reads"),
        ("run", "ran"),
        ("say", "said"),
        ("see", "saw seen"),
        ("sell", "sold"),
        ("send", "sent"),
        ("sit", "sat"),
        ("sleep", "slept"),
        ("speak", "spoke spoken"),
        ("spend", "spent"),
        ("take", "took taken"),
        ("teach", "taught"),
        ("tell", "told"),
        ("think", "thought"),
        ("use", "uses used using"),
        ("owe", "owes owed owing"),
        ("wear", "wore worn"),
        ("win", "won"),
        ("write", "wrote written"),
        ("child", "children"),
        ("person", "people persons"),
        ("wife", "wives"),
        ("colour", "color colors"),
        ("favourite", "favorite favorites favourites"),
        ("e-mail", "email emails"),
    )
    for form in forms.split()
}
_SUFFIXES = ("ing", "ied", "ies", "ed", "es", "s", "e")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A key that the forms of one regular word share (`lives`, `living`, `lived`), not a dictionary form."""
    base = _IRREGULAR.get(word)
    if base is not None:
        return stem(base)
    for suffix in _SUFFIXES:
        if suffix == "ed" and word.endswith("eed"):
            continue
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            root = word.removesuffix(suffix)
            if suffix in ("ied", "ies"):
                return root + "y"
            if suffix == "s" and root.endswith("s"):
                return word
            if suffix in ("ing", "ed") and root[-1] == root[-2] and root[-1] not in "lsz":
                return root[:-1]
            return root.removesuffix("e") if len(root) > 3 else root
    return word


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


def _phrases(phrases: str) -> frozenset[str]:
    return frozenset(phrases.split(","))


def _frames(frames: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(stem(word) for word in frame.split()) for frame in frames.split("|"))


BE = frozenset({"am", "is", "are", "was", "were", "be", "been", "being"})
AUXILIARIES = BE | _words("has have had do does did will would shall should can could may might must ought")
PAST_AUXILIARIES = frozenset({"was", "were", "had", "did"})
HEDGES = _words(
    "may might maybe perhaps possibly probably presumably could would if unless whether hope hopes"
    " hoping wishes want wants wanted planning considering apparently allegedly"
    " reportedly supposedly suspect suspects likely unlikely seems seem seemed appears thinks believes"
    " claimed says said told heard rumor rumour rumored according assume"
    " assumes assuming try tries trying"
    " tried almost pretend imagine suppose supposed intends intend hypothetically expects"
    " expected doubt doubts unclear unsure ask asked asks wonder wonders think believe when whenever"
)
"""The sentence reports, supposes or wishes: nothing in it is asserted."""
HEDGES_BEFORE_TO = _words(
    "plan plans planned hope wish dream dreams try claim claims guess like about going need needs"
)
"""The same only before `to` or `that`; elsewhere they are nouns (`the plan is Basic`)."""
RELATIVE_TIME = _words(
    "today yesterday tomorrow tonight ago recently lately earlier later soon just sometimes"
    " occasionally usually often mostly typically generally rarely seldom normally again"
    " temporarily"
)
"""The sentence is about a moment that another sentence does not share, or only about most moments."""
RELATIVE_PERIODS = _words(
    "week weekend month quarter year night morning evening afternoon time season summer spring autumn fall"
    " winter monday tuesday wednesday thursday friday saturday sunday january february march april may june"
    " july august september october november december"
)
"""The same behind last, next or this."""
ADDITIVE = _words("also too another additionally second other both either besides plus including")
"""The sentence adds to a set, so another value beside it is no contradiction."""
NEGATIONS = frozenset(
    {"not", "never", "no", "nobody", "nothing", "none", "neither", "nor", "without", "hardly"}
)
PARTIAL = _words("only just all every always everyone everything entirely completely fully quite many much")
"""Behind a negation these deny a part, not the whole (`not only`, `not all`)."""
FILLERS = _words(
    "the currently now still already really very actually officially presently please definitely certainly"
    " absolutely clearly simply indeed yet so quite pretty truly nowadays always directly"
)
"""Words that change nothing a comparison looks at."""
ARTICLES = frozenset({"a", "an"})
DETERMINERS = _words("the a an my our your his her its their this that these those")
UNRESOLVED = _words(
    "he she it they you this that these those his her its their your one who which someone somebody anyone"
    " everyone everybody something anything everything there here what"
)
"""A subject of these names nothing that another sentence shares."""
TITLES = _words("mr mrs ms dr prof sir")
LEGAL_FORMS = _words("inc corp corporation ltd llc gmbh ag co company limited plc sa bv")
STOPS = _words(
    "and but while whereas because since as with who which that where when although though after before until"
    " till from so or for by during via per if than then to at on in of near using under"
)
"""The object of a simple statement ends before one of these."""

VERBS = _stems(
    "live reside dwell stay work report own lead manage run use need have drive eat drink smoke like love"
    " enjoy hate dislike prefer speak know play study teach attend support accept require include contain"
    " start begin end finish open close cost weigh measure last take expire arrive depart leave launch ship"
    " belong marry join graduate found move relocate retire die hire acquire founded sign publish release complete"
    " win earn pay owe charge store host deploy return allow permit offer provide serve sell make produce"
    " build write maintain handle process send receive listen bind point connect depend employ hold keep"
    " wear practice practise trust follow watch read visit travel meet call name become go come get give see"
    " do happen occur resolve default total average span cover reach exceed grow rise fall drop double save"
    " spend lose raise land sleep wake walk train swim cook collect operate ban forbid prohibit enable"
    " disable encrypt log track sync refresh rotate retain purge fail pass block ignore match exist remain"
    " stand sit face overlook border flow commute delete replicate cache compress limit cap throttle renew"
    " bill invoice deliver assign route forward terminate validate verify check restart reboot scale shut"
    " turn represent house seat feature date rank vote elect appoint succeed replace inherit suffer carry"
    " lack refuse avoid stop quit tolerate ride fly sing paint wire mount export import compile render back"
    " eject stock guard preserve grant format guarantee ensure affect apply fix solve cause create reduce"
    " improve recommend suggest describe define display show hide print generate emit consume produce publish"
    " subscribe register unregister sort filter index search update upgrade downgrade install remove add edit"
    " change modify convert parse sanitize escape authenticate authorize trust monitor alert notify warn"
    " escalate trigger schedule execute launch invoke call respond reply answer forbid honor honour respect"
    " obey enforce violate prevent protect expose reveal share distribute inherit extend implement override"
    " wrap contain comprise form involve handle tolerate survive grow harvest plant breed shelter feed groom"
    " treat cure prescribe diagnose operate repair rent lease borrow lend insure refund exchange import"
    " organize organise host chair coach referee perform rehearse record film direct edit paint sculpt"
    " translate interpret speak sign negotiate vote campaign govern rule tax fund finance sponsor donate"
    " volunteer serve deploy patrol arrest convict commute swim climb hike sail row ski skate box"
)
"""Main verbs that a clause may turn on when it has no auxiliary."""
REPEATABLE = _stems(
    "run eat drink buy pay watch read visit spend walk swim train score sell make see attend meet travel take"
    " play win lose cook order send receive collect drive ride fly write sleep go get give do donate bike"
    " hike lift study earn"
)
"""What one may do again in another amount: in the past tense, another number is another time."""
PLURAL_VERBS = _stems(
    "support like love enjoy hate dislike speak know play study teach attend accept include contain use need"
    " own visit read watch eat drink offer provide sell make meet see hire wear practice carry serve"
)
"""What one may do to several things at once: another object is no contradiction."""
ONE_TIME = _stems(
    "die founded launch release sign join graduate marry retire acquire publish complete approve adopt move"
    " relocate establish create ratify invent discover inaugurate demolish abolish incorporate merge patent"
    " discontinue decommission write design film elect appoint finalize pass grant"
)
"""What happens to a subject once: another date contradicts."""

PRESENT_DATED = _frames("meet|gather|convene|rehearse|train|sync")
"""The same only in the present: `met on 3 March` and `met on 7 April` are two meetings."""

NAMED_FRAMES = _frames(
    "live in|reside in|be base in|be locate in|be situate in|be headquarter in|be station in|be bear in"
    "|die in|work at|work for|be employ by|be employ at|report to|be marry to|be engage to|be manage by"
    "|be own by|be lead by|be head by|be founded by|be founded in|graduate from|move to|relocate to"
    "|be hire by|belong to|be assign to|be run by|be maintain by|be chair by|be acquire by|be direct by"
    "|be supervise by|be design by|be invent by|be host by|take place in|take place at|be name after"
    "|be replace by"
)
"""Verb and preposition that take one named object at a time."""
OPEN_FRAMES = _frames(
    "prefer|be call|be name|be set to|default to|be host on|be host in|be store in|be store on|be write in"
    "|be deploy to|be deploy on|be deploy in|run on|listen on|bind to|point to|be save in|be keep in"
    "|be keep on|be make of|be build of|be build on|be locate on|be park in|be park on|be encrypt with"
    "|be mount at|be mount on|resolve to|be hold in|be hold at|work as|serve as|be paint|be set in|sit on"
    "|be locate at|authenticate with"
)
"""The same for objects that need not be names."""
DATED_FRAMES = _frames(
    "start|begin|end|finish|expire|open|close|launch|arrive|depart|leave|be schedule|be due|take place"
    "|happen|occur|be bear|die|be founded|ship|renew|retire|wake up|run|be plan|land|return|be set|stop"
    "|be release|be launch|be publish|be sign|be build|be establish|be create|be hold|be complete"
    "|be approve|be hire|be adopt|be acquire|join|graduate|marry|move|relocate|resume|terminate|be open"
    "|be close|be postpone|be move|be deliver|be reschedule|be elect|be appoint|be book|rotate|be ship"
)
"""Verbs whose date or clock time says when the subject's one event is, not since when a state holds."""

PLURAL_ATTRIBUTES = _stems(
    "friend brother sister sibling colleague coworker teammate child son daughter cousin uncle aunt neighbor"
    " neighbour hobby skill language interest project pet cat dog client customer member partner supplier"
    " vendor competitor ingredient feature tool reason example problem issue goal task strength weakness"
    " student teacher employee contributor author advantage option benefit risk challenge part thing way car"
    " book movie song dish food teammate grandparent grandchild nephew niece band game sport allergy"
    " subsidiary investor sponsor speaker dependency product city country place"
)
"""Nouns of which one may have several, unless the text says favourite, main or only."""
ATTRIBUTES = _stems(
    "name colour status state e-mail phone number address birthday birthdate age height weight password pin"
    " port price cost budget deadline capital population manager boss ceo cto cfo coo president owner"
    " maintainer lead leader head director spouse wife husband mother father hometown nationality gender job"
    " occupation profession employer title role size version timezone locale currency theme mode plan tier"
    " database editor framework region zone branch license licence url endpoint host hostname ip username"
    " handle nickname zip postcode salary rent total limit timeout threshold rate duration start end date"
    " time venue location destination seat room floor headquarters type format order code id identifier"
    " quota capacity temperature speed frequency interval length width depth distance length balance score"
    " grade rank rating language accent genre religion model brand backend runtime os browser shell theme"
    " layout font priority severity stage phase level codename birthplace residence captain mayor chairman"
    " chair dean principal landlord doctor dentist mascot motto slogan origin supervisor mentor fiancé"
    " style fiancée boyfriend girlfriend registrar provider protocol encoding charset algorithm strategy schedule"
)
"""Nouns that name one value of their owner."""
SINGULARIZERS = _stems(
    "favourite favorite default preferred primary main current official maximum minimum only max min legal"
    " maiden middle first last full biggest largest smallest best oldest youngest lead chief top final new"
    " total average"
)
"""Behind one of these any noun has one value."""
UNIQUE_ROLES = _stems(
    "ceo cto cfo coo president chairman chairwoman chair captain mayor dean king queen capital"
)
"""`X is CEO of Y` gives Y one CEO, with or without an article."""

EXCLUSIVE: dict[str, int] = {
    stem(word): number
    for number, words in enumerate(
        (
            "red blue green yellow black white grey gray brown orange purple pink violet turquoise beige",
            "single married divorced widowed engaged",
            "vegan vegetarian pescatarian omnivore carnivore",
            "left-handed right-handed ambidextrous",
            "introvert extrovert",
            "blond blonde brunette red-haired",
            "north south east west",
            "small medium large",
            "low moderate high critical",
            "pending approved rejected cancelled postponed completed delivered",
            "draft published archived",
            "daily weekly biweekly monthly quarterly yearly annual annually hourly nightly",
            "public private internal",
            "wooden metal plastic glass concrete steel",
            "male female",
            "morning afternoon evening night",
            "spring summer autumn fall winter",
            "junior senior",
            "round square rectangular triangular oval",
            "hot cold lukewarm",
            "free paid",
        )
    )
    for word in words.split()
}
"""Words of one line exclude each other as what something is."""
OPPOSITES: dict[str, str] = {
    stem(negative): stem(positive)
    for positive, negatives in (
        ("enable", "disable"),
        ("active", "inactive"),
        ("available", "unavailable"),
        ("like", "dislike hate detest loathe"),
        ("allow", "forbid prohibit ban disallow"),
        ("possible", "impossible"),
        ("safe", "unsafe dangerous"),
        ("secure", "insecure"),
        ("legal", "illegal"),
        ("valid", "invalid"),
        ("complete", "incomplete"),
        ("correct", "incorrect wrong"),
        ("open", "closed shut"),
        ("online", "offline"),
        ("alive", "dead deceased"),
        ("true", "false"),
        ("required", "optional"),
        ("employed", "unemployed jobless"),
        ("connected", "disconnected"),
        ("encrypted", "unencrypted"),
        ("supported", "unsupported"),
        ("locked", "unlocked"),
        ("synchronous", "asynchronous"),
        ("visible", "invisible hidden"),
        ("present", "absent"),
        ("stable", "unstable"),
        ("vulnerable", "invulnerable"),
        ("full", "empty"),
        ("on", "off"),
        ("accept", "reject refuse"),
        ("pass", "fail"),
        ("increase", "decrease"),
        ("mandatory", "voluntary"),
        ("expensive", "cheap inexpensive"),
        ("healthy", "unhealthy"),
        ("guilty", "innocent"),
        ("known", "unknown"),
        ("verified", "unverified"),
        ("reachable", "unreachable"),
        ("responsive", "unresponsive"),
        ("compatible", "incompatible"),
        ("tolerant", "intolerant"),
        ("finished", "unfinished"),
        ("limited", "unlimited"),
        ("have", "lack"),
        ("thread-safe", "thread-unsafe"),
    )
    for negative in negatives.split()
}
"""A word and the word it denies: `is disabled` is read as `is not enabled`."""
OPPOSITE_VERBS = _stems(
    "disable dislike hate detest loathe forbid prohibit ban disallow reject refuse fail lack decrease"
)
"""Those that mean the same as verbs of their own; the others only behind a form of be."""
AFFIRMATIVE_STATES = frozenset(OPPOSITES.values())
SYNONYMS: dict[str, str] = {
    stem(word): stem(base)
    for base, words in (
        ("like", "love enjoy adore"),
        ("allow", "permit"),
        ("live", "reside dwell"),
        ("start", "begin commence"),
        ("end", "finish"),
        ("job", "occupation profession"),
        ("wife", "spouse"),
        ("husband", "spouse"),
        ("boss", "manager"),
        ("supervisor", "manager"),
        ("mail", "e-mail"),
        ("cell", "phone"),
        ("telephone", "phone"),
        ("mobile", "phone"),
        ("birthdate", "birthday"),
        ("grey", "gray"),
        ("need", "require"),
        ("pass", "succeed"),
        ("on", "enable"),
        ("mandatory", "require"),
    )
    for word in words.split()
}
"""Words taken as one when statements are compared; both directions of a contradiction still need it."""

CONTINENTS = frozenset(
    ("europe", "asia", "africa", "north america", "south america", "australia", "oceania", "antarctica", "eu")
)
COUNTRIES = _phrases(
    "afghanistan,albania,algeria,argentina,armenia,austria,azerbaijan,bangladesh,belarus,belgium,bolivia"
    ",bosnia,brazil,britain,bulgaria,cambodia,cameroon,canada,chile,china,colombia,costa rica"
    ",croatia,cuba"
    ",cyprus,czechia,czech republic,denmark,dominican republic,ecuador,egypt,england,estonia,ethiopia"
    ",finland,france,georgia,germany,ghana,great britain,greece,guatemala,hungary,iceland,india,indonesia"
    ",iran,iraq,ireland,israel,italy,jamaica,japan,jordan,kazakhstan,kenya,kuwait,latvia,lebanon,libya"
    ",lithuania,luxembourg,malaysia,malta,mexico,moldova,mongolia,montenegro,morocco,mozambique,myanmar"
    ",nepal,netherlands,new zealand,nigeria,north korea,norway,pakistan,panama,paraguay,peru,philippines"
    ",poland,portugal,qatar,romania,russia,rwanda,saudi arabia,scotland,senegal,serbia,singapore,slovakia"
    ",slovenia,somalia,south africa,south korea,korea,spain,sri lanka,sudan,sweden,switzerland,syria"
    ",taiwan,tanzania,thailand,tunisia,turkey,uganda,uk,ukraine,united arab emirates,united kingdom"
    ",united states,uruguay,us,usa,america,uzbekistan,venezuela,vietnam,wales,yemen,zambia,zimbabwe"
)
REGIONS = _phrases(
    "alabama,alaska,arizona,arkansas,california,colorado,connecticut,delaware,florida,hawaii,idaho"
    ",illinois,indiana,iowa,kansas,kentucky,louisiana,maine,maryland,massachusetts,michigan,minnesota"
    ",mississippi,missouri,montana,nebraska,nevada,new hampshire,new jersey,new mexico,north carolina"
    ",north dakota,ohio,oklahoma,oregon,pennsylvania,rhode island,south carolina,south dakota,tennessee"
    ",texas,utah,vermont,virginia,west virginia,wisconsin,wyoming,ontario,quebec,bavaria"
    ",tuscany,catalonia"
    ",brandenburg,saxony,hesse,normandy,brittany,provence,brooklyn,manhattan,queens,silicon valley"
    ",bay area,lombardy,sicily,andalusia,new south wales,british columbia,alberta"
)
PLACE_ALIASES = {
    "us": "united states",
    "usa": "united states",
    "america": "united states",
    "uk": "united kingdom",
    "britain": "united kingdom",
    "great britain": "united kingdom",
    "england": "united kingdom",
    "scotland": "united kingdom",
    "wales": "united kingdom",
    "czech republic": "czechia",
    "holland": "netherlands",
    "korea": "south korea",
    "nyc": "new york",
    "new york city": "new york",
    "la": "los angeles",
    "sf": "san francisco",
}
NICKNAMES = {
    short: full
    for full, shorts in (
        ("robert", "bob rob bobby"),
        ("william", "will bill billy"),
        ("elizabeth", "liz beth lizzy betty"),
        ("michael", "mike mick"),
        ("thomas", "tom tommy"),
        ("katherine", "kate katie kathy cathy"),
        ("richard", "rick dick rich"),
        ("james", "jim jimmy"),
        ("joseph", "joe"),
        ("anthony", "tony"),
        ("alexander", "alex sasha"),
        ("margaret", "maggie meg peggy"),
        ("jennifer", "jen jenny"),
        ("david", "dave"),
        ("daniel", "dan danny"),
        ("samuel", "sam"),
        ("edward", "ed eddie ted"),
        ("steven", "steve"),
        ("andrew", "andy drew"),
        ("christopher", "chris"),
        ("deborah", "deb debbie"),
        ("melanie", "mel"),
        ("nicholas", "nick"),
        ("patricia", "pat patty"),
        ("charles", "charlie chuck"),
    )
    for short in shorts.split()
}
PREPOSITIONS = _words(
    "at in on by for to of from with under over near since until till during into onto via as"
)
COUNTED_THINGS = _stems(
    "room floor phase step version page chapter day week question issue ticket level part gate platform line"
    " number building bus flight sprint row column section article case order item task unit terminal lane"
    " seat table track episode season volume route highway exit apartment suite v no"
)
"""Nouns whose number says which one (`room 12`), not how many."""
LASTING_VERBS = _stems(
    "like eat drink smoke live work own use drive prefer speak play travel fly support practice wear cook"
    " commute ride vote employ manage lead teach tolerate marry"
)
SHOWN_PREDICATES = frozenset(
    {
        *("located_in", "works_at", "manager", "spouse", "owner", "lead", "maintainer", "founder", "age"),
        *("birthday", "birthplace", "founded_on", "deadline", "e-mail", "phone"),
    }
)
CLOSED_CLASS = PREPOSITIONS | DETERMINERS | STOPS | UNRESOLVED | FILLERS
"""Words without forms, which are never stemmed."""

"""Function words: what the lexical leg leaves out, and what shows which language a text is in."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOPWORDS: dict[str, frozenset[str]] = {
    "english": _words(
        "a about above after again against all am an and any are aren't as at be because been before being below"
        " between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during"
        " each few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's"
        " hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it's its itself let's"
        " me more most my myself no nor not of off on once only or other our ours ourselves out over own same she"
        " she'd she'll she's should shouldn't so some such than that that's the their theirs them themselves then"
        " there there's these they they'd they'll they're they've this those through to too under until up very was"
        " wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while who who's"
        " whom why why's will with won't would wouldn't you you'd you'll you're you've your yours yourself"
        " yourselves"
    ),
    "german": _words(
        "aber als am an auch auf aus bei bin bis da das dass dein dem den der des die dies diese dieser doch du durch"
        " ein eine einem einen einer er es euch euer für gegen hat hatte haben ich ihr im in ist ja kann kein keine"
        " man mein mich mir mit nach nicht noch nur ob oder ohne sein seine sich sie sind so über um und uns unser"
        " vom von vor war waren was wenn wer wie wir wird wo wurde zu zum zur"
    ),
    "french": _words(
        "à au aux avec ce ces cette dans de des du elle elles en est et était eu il ils j'ai je la le les leur lui"
        " ma mais me mes moi mon ne nos notre nous on ont ou où par pas plus pour qu'il que qui sa se ses son sont"
        " sur ta te tes toi ton tu un une vos votre vous c'est n'est d'un d'une"
    ),
    "spanish": _words(
        "al como con cual cuando de del desde donde el él ella ellas ellos en entre era es esta está este esto estos"
        " fue ha había han hasta hay la las le les lo los más me mi mis muy no nos nosotros o para pero por porque"
        " que qué quien se ser si sí sin sobre son su sus también te tiene tu tus un una unos y ya yo"
    ),
    "italian": _words(
        "agli ai al alla alle anche che chi ci come con da dal dalla degli dei del della delle di dove e è ed era gli"
        " ha hai hanno ho i il in io la le lei li lo loro lui ma mi mia mio ne nei nel nella noi non nostro o per"
        " perché più quando quello questa questo se si sono su sua sul sulla suo ti tra tu un una uno vi voi"
    ),
    "portuguese": _words(
        "a ao aos as às com como da das de dela dele do dos e é ela elas ele eles em entre era essa esse esta está"
        " este eu foi há isso já lhe mais mas me meu minha muito na não nas no nos nós o onde os ou para pela pelo"
        " por porque qual quando que quem se sem ser seu sua são também te tem um uma você"
    ),
    "dutch": _words(
        "aan al als bij dan dat de deze die dit door een en er geen had heb heeft het hij hoe hun ik in is je jij kan"
        " maar me meer met mij mijn naar niet nog nu of om onder ons ook op over te tot uit van veel voor waar was"
        " wat we wie wij wordt ze zich zij zijn zo"
    ),
    "russian": _words(
        "а без бы был была были было быть в вам вас во вот все вы где да для до его ее если есть же за и из или им их"
        " к как когда кто ли мне мы на не него нет но о об он она они от по при с со так там то ты у уже что это я"
    ),
}

NEGATIONS = _words(
    "no not never none nobody nothing neither nor without cannot nicht kein keine keinen keinem keiner keines nie"
    " niemals ohne nichts niemand pas jamais sans aucun aucune rien personne ni nunca jamás ningún ninguno ninguna"
    " nada nadie senza nessuno nessuna niente né não nem sem nenhum nenhuma ninguém niet geen nooit zonder niets"
    " niemand не нет ни никогда без никто ничего"
)
"""Words that deny, in the same languages: a text with one and a text without it say the opposite."""


def is_negation(word: str) -> bool:
    """Whatever its case and apostrophe; `doesn't` and its like too."""
    plain = word.casefold().replace("’", "'")
    return plain in NEGATIONS or plain.endswith("n't")

"""The explorer: infinite width in the browser, exact, alive, offline.

One page, `page.html`, built from the sources in `explorer/` at the top of the repository; it needs no network and
no server. `widelimit explore` opens it, `explore` shows it in a notebook on a network and data of one's own.
"""

from ._page import open_page as open_page
from ._page import page_file as page_file
from ._page import page_text as page_text
from ._page import serve as serve
from ._share import link as link
from ._widget import explore as explore

"""Proof on data that people have: `widelimit bench tables` and `widelimit bench images`."""

from widelimit._base.folder import FolderError as FolderError

from ._images import MODELS as MODELS
from ._images import Model as Model
from ._images import Scored as Scored
from ._images import run_images as run_images
from ._images_page import draw_images as draw_images
from ._images_page import image_rows as image_rows
from ._images_page import write_images_page as write_images_page
from ._methods import METHODS as METHODS
from ._methods import Method as Method
from ._page import chosen_by as chosen_by
from ._page import rows_of as rows_of
from ._page import write_page as write_page
from ._protocols import PROTOCOLS as PROTOCOLS
from ._protocols import Chosen as Chosen
from ._protocols import Protocol as Protocol
from ._protocols import Standing as Standing
from ._protocols import choose as choose
from ._protocols import standings as standings
from ._tables import Done as Done
from ._tables import StoppedError as StoppedError
from ._tables import run_tables as run_tables
from ._uci import TableSet as TableSet
from ._uci import find_sets as find_sets
from ._uci import read_set as read_set

// Which rows of a long list are worth being in the document.

export interface RowWindow {
  first: number;
  end: number;
  topPx: number;
  bottomPx: number;
}

/// The rows that can be seen, and `margin` more on both sides; the space of the others above and below.
export function rowWindow(numRows: number, rowPx: number, scrollTop: number, viewPx: number, margin = 8): RowWindow {
  const most = Math.ceil(viewPx / rowPx) + 2 * margin + 1;
  const last = Math.max(0, numRows - most);
  const first = Math.min(last, Math.max(0, Math.floor(scrollTop / rowPx) - margin));
  const end = Math.min(numRows, first + most);
  return { first, end, topPx: first * rowPx, bottomPx: (numRows - end) * rowPx };
}

/// Where to scroll so that a row can be seen; the same place if it can.
export function scrollToShow(row: number, rowPx: number, scrollTop: number, viewPx: number): number {
  if (row * rowPx < scrollTop) return row * rowPx;
  if ((row + 1) * rowPx > scrollTop + viewPx) return (row + 1) * rowPx - viewPx;
  return scrollTop;
}

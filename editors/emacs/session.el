;;; A session in a real Emacs: the block of docs/editors.md as it stands there, eglot, the real binary.
(require 'package)
(package-activate-all)
(require 'eglot)
(require 'cl-lib)
(setq eglot-sync-connect 20 eglot-autoshutdown t)

(defun check (condition message &rest words)
  (unless condition
    (message "emacs: %s" (apply #'format message words))
    (kill-emacs 1)))

(defun wait-for (what condition)
  (let ((limit (+ (float-time) 20)))
    (while (and (not (funcall condition)) (< (float-time) limit))
      (accept-process-output nil 0.05))
    (check (funcall condition) "waited in vain for %s" what)))

(let ((block (with-temp-buffer
               (insert-file-contents (expand-file-name "docs/editors.md" (getenv "ROOT")))
               (search-forward "```elisp\n")
               (let ((start (point)))
                 (search-forward "\n```")
                 (buffer-substring start (match-beginning 0))))))
  (with-temp-buffer (insert block) (eval-buffer)))

(find-file (expand-file-name "src/Lamp.bt" (getenv "PROJECT")))
(check (eq major-mode 'beamtalk-mode) "the mode is %s" major-mode)
;; In batch no command ends, so the hook that starts the server is called here.
(unless (eglot-current-server) (apply #'eglot--connect (eglot--guess-contact)))
(wait-for "the server" #'eglot-current-server)
(unless eglot--managed-mode (eglot--managed-mode 1))
(let* ((server (eglot-current-server))
       (place (progn (goto-char (point-min)) (search-forward "subclass: La") (eglot--TextDocumentPositionParams)))
       (hover (format "%S" (jsonrpc-request server :textDocument/hover place))))
  (check (string-match-p "Gives light" hover) "hover: %s" hover)
  (goto-char (point-max))
  (insert "\n  broken => self frob: (\n")
  (eglot--signal-textDocument/didChange)
  (wait-for "a diagnostic" (lambda () (cl-plusp (length (flymake-diagnostics)))))
  (let ((symbols (format "%S" (jsonrpc-request server :textDocument/documentSymbol
                                               (list :textDocument (eglot--TextDocumentIdentifier))))))
    (check (string-match-p "toggle" symbols) "symbols in broken code: %s" symbols))
  (set-buffer-modified-p nil)
  (eglot-shutdown server)
  (message "emacs %s: eglot, hover, diagnostics, symbols" emacs-version))
